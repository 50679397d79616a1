"""Streamed replies: their events, and the bodies that they are put together into."""
