"""Federated data: image sets, who holds which images, and what is wrong with some of them."""
