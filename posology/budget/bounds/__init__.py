"""Bounds on the tokens of a call, before it is sent."""
