"""What happens at a client: training, evaluation, the tasks it can be asked for."""
