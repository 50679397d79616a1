"""PubMed as NLM publishes it: the XML of the annual baseline, of the daily updates and of the E-utilities."""
