"""Models of a game that are fitted to some of its values and know their own indices."""
