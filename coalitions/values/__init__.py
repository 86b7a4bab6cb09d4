"""Solution concepts: what each player, pair or coalition of a game deserves."""
