"""Methods that find good structures fast, with a cheap bound."""
