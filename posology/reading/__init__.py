"""A small cross-encoder that runs on a CPU: which sentence answers, and whether a text supports a claim."""
