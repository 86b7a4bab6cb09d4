"""What a curious server could read off an update."""
