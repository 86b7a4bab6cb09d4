"""Small problems, whose coalitions can all be listed: nothing has to be compiled."""
