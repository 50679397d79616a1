"""Summarization compression (TCRA-LLM, section 4.2.1): a small model summarises each passage."""
