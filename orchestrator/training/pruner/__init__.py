"""Training of a pruner: labels by a paid model, then fine-tuning (Provence)."""
