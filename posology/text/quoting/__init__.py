"""Edges of quotes, which may leave out nothing that turns a meaning, and sentences that a quote nearly repeats."""
