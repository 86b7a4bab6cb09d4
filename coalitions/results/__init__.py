"""Results as people want them: tables, pictures, comparisons, and the k largest."""
