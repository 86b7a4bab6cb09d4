"""Many runs beside each other: cells, variants, scores, and whether one is better."""
