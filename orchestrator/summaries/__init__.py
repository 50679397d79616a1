"""Data sets of passages and their summaries, made by a model that is paid for (TCRA-LLM, figure 4)."""
