"""Second opinions: what else there is beside the best structure, and what it would cost."""
