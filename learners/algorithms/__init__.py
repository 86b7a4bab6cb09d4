"""Federated methods, one a file."""
