"""PDFs with known sentences, as journals, offices, printers and scanners make them."""
