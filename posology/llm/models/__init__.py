"""Models: their names, what each family of them can do, and how much they reason."""
