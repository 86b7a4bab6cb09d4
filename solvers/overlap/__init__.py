"""Overlapping coalitions: a player may be in several at once."""
