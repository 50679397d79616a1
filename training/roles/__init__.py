"""The packaged head of sentence roles: its abstracts and its training."""
