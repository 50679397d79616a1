"""Literature services: PubMed by NCBI's E-utilities, and Europe PMC, fetched into files that the readers read.

A fetch writes into a folder and resumes there; see :mod:`posology.corpus.live.fetch`. Nothing here is an index: what was
fetched is ingested like any other file.
"""
