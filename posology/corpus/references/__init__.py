"""Exports of databases and reference managers: tables, MEDLINE's format, RIS, BibTeX and EndNote's XML."""
