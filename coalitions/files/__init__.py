"""Files of users and of our own: read with care, written whole."""
