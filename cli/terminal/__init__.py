"""What commands share at the terminal: options, printing, completion."""
