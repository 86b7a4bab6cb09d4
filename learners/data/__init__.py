"""Data sets, their splits among clients, domain shifts and poisoning."""
