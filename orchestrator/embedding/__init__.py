"""Vectors that are bought: of a question by whoever asks it, of literature by whoever ingests it."""
