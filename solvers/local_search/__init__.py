"""Search by moves: what the heuristics and branch-and-cut share."""
