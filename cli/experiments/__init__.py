"""Commands on many runs: compare methods, sweep options, tune."""
