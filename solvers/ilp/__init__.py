"""The clique-partition program, and what its back-ends share."""
