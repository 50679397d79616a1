"""A pruner of one's own: its labels, made by a model that is paid for, and its training (Provence)."""
