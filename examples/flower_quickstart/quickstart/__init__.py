"""Flower's quickstart for PyTorch, on digits."""
