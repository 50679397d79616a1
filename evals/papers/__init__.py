"""The experiments of the five papers as named suites: ``python -m evals.papers --list``."""
