"""The compiler: imported late, its time taken apart from that of the work."""
