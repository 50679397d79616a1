"""Pages that compare: two policies on the same questions, the Q-table, and evaluations."""
