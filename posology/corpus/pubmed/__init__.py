"""PubMed as NLM publishes it: the XML of the annual baseline, of the daily updates and of the E-utilities."""

from posology.corpus.pubmed.reader import ROOTS, SUFFIXES, count, read

__all__ = ["ROOTS", "SUFFIXES", "count", "read"]
