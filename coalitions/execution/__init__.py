"""Games that are expensive: shared among workers, and kept on disk."""
