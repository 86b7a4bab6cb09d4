"""Models of a game that are fitted to some of its values, and whose Shapley values are known."""
