"""LeanContext's experiments over BioASQ's snippets, which are as long as its chunks."""
