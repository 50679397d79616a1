"""What the router decides, and what it costs."""
