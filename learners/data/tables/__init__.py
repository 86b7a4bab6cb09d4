"""Tables of a user: columns, whose rows are whose, what is predicted, and how it is dealt out."""
