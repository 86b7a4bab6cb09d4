"""Doors for data of a user: files, folders, and objects of other libraries."""
