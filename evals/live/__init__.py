"""Answers of a real model, beside other ways to ask it."""
