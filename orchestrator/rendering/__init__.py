"""Answers, searches and citations as text for people and other programs: plain, Markdown, RIS, BibTeX, CSL, CSV."""
