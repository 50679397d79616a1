"""Cost estimates from retrieval and token counts alone: see ``docs/how-to/estimates.md``."""
