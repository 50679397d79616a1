"""Spending by day, stage, strategy and model."""
