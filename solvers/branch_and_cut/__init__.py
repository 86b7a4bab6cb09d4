"""Our exact method: a Lagrangian dual, cuts, pegging, branching, and a certificate."""
