"""Estimators of values, one file for each family; a registry finds them."""
