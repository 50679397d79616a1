"""Training of a pruner (Provence): labels by a paid model, then fine-tuning."""
