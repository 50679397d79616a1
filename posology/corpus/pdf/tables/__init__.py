"""Tables of a page as rows of evidence: docs/decisions/0080-pdf-tables.md.

A table is taken only if it has a caption, headings, and a grid that is certain as a whole: a wrong cell harms, and a table
that is not taken stays text, as before.
"""
