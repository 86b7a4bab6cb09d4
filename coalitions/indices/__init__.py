"""Interaction indices, one a file; a registry finds them."""
