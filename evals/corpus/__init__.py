"""How files of literature are read."""
