"""Hours under fire: the whole product under every fault at once, and a checker of what its clients saw.

``python -m evals.fire --hours H --seed N``; evals/results/fire.md describes it.
"""
