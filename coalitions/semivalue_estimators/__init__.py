"""Ways to know a semivalue, one a file; a registry finds them."""
