"""Beside the best structure: the next ones, wishes and their costs, explanations."""
