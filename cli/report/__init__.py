"""Pages and pictures of runs and structures."""
