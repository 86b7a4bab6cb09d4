"""Models that learn from a table of data, one per file."""
