"""Tables of published forms: columns, titles and formats, declared once for the terminal, the console and reports."""
