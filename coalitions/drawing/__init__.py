"""What pictures share: colours, plain style, pages that need nothing but themselves."""
