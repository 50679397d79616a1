"""Training of Q-tables, pruners and summarization models."""
