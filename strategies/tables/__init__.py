"""Evidence tables: the fields of a document, each with a value and verified quotes, or not reported."""
