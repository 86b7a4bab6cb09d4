"""Tables of data that commands read: what is asked of one, and what becomes of blank cells."""
