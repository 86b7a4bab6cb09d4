"""Programs that print a table: ours and the peers on the same work."""
