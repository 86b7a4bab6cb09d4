"""A folder with one folder a client: arrays, tables or pictures."""
