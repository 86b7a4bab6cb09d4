"""Choosing options: what can be searched, and how, with equal budgets for every method."""
