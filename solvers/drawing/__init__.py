"""Pictures of solutions, for notebooks, files and the command line."""
