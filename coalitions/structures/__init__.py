"""Partitions of players: list them, compare them, ask whether they are stable."""
