"""Decisions made once more: of recorded jobs, and of questions under two policies."""
