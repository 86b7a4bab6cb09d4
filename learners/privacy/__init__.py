"""Noise on what leaves a client, and the account of it."""
