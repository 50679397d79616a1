"""Training of summarization models: a paid data set, then fine-tuning (TCRA-LLM, figure 4)."""
