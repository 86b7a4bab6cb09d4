"""Estimators of Shapley values, one a file."""
