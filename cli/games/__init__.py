"""Commands on graphs and games."""
