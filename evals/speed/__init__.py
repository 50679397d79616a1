"""Figures of speed and memory, by turns beside an earlier version."""
