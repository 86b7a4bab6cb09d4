"""Ways to know the interactions of all pairs, one a file; a registry finds them."""
