"""Training of Q-tables: explore, reward, learn, promote (LeanContext, algorithm 1)."""
