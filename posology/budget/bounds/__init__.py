"""How many tokens a call can have at most, before it is sent."""
