"""Commands on federated runs."""
