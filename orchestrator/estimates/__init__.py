"""What questions will cost, from retrieval and token counts alone: see ``docs/estimates.md``."""
