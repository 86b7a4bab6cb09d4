"""Commands on what users add."""
