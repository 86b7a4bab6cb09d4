"""Many runs: comparisons of methods, their statistics, and the tuning of options."""
