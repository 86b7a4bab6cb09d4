"""Where the tasks that clients are asked to do run."""
