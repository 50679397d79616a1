"""The ``eval`` command: suites of questions with known answers, asked by policies and models."""
