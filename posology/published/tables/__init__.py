"""Published forms of evidence tables."""
