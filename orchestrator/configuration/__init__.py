"""Configuration files and stored keys: where they are, and how they are read and written."""
