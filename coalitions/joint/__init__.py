"""What an interaction index is, which coalitions it weighs, and how it is read off models."""
