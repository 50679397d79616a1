"""TCRA-LLM's experiments over BioASQ's snippets, which are as short as the entries of its food data base."""
