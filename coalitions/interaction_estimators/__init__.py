"""Ways to know an interaction index of all coalitions up to an order; a registry finds them."""
