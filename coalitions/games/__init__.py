"""Families of games, one a file."""
