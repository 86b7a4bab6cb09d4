"""Integer-programming back-ends: each translates the one program, and nothing else."""
