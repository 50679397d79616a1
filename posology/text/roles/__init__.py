"""The part that each sentence of an abstract plays: by its headings, and by a small network where there are none."""
