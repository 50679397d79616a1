"""The offline reader: quotes sentences without a language model."""
