"""What was spent, by day, stage, strategy and model."""
