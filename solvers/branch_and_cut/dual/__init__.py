"""The Lagrangian dual: multipliers, cuts, and the bounds they prove."""
