"""Cost estimates from retrieval and token counts alone: see ``docs/estimates.md``."""
