"""Full texts in JATS (NISO Z39.96), as PubMed Central publishes them: single articles, sets and archives."""
