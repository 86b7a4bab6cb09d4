"""Every table and figure of the papers: what they print, what comes out here, which claims hold."""
