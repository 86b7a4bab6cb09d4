"""Coalitions of limited sizes and counts: columns, prices and branching."""
