"""What happens to a graph before a method sees it."""
