"""Forms of output that are not a table in a terminal: plain text, Markdown, citations."""
