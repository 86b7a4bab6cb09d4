"""What several estimators share: designs of coalitions, compiled loops, least squares."""
