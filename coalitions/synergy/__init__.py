"""Estimators of pairwise synergy, one a file."""
