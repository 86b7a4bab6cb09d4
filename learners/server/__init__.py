"""The server: rounds, aggregation, traffic, engines."""
