"""The command that fills in evidence tables."""
