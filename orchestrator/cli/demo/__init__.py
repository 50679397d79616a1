"""``posology demo``: the sample corpus, its questions, budgets and policies."""
