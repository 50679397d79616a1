"""Documents that people write: pages in HTML and files of Word."""
