"""The experiments, some in each module."""
