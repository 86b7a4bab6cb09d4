"""Federated learning: train models, exchange them, and play games on them."""
