"""Exports whose lines begin with tags: MEDLINE's format, RIS, and those of Web of Science, Cochrane, Ovid, EndNote and RefWorks."""
