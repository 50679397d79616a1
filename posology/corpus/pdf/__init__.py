"""Reader of PDF through PDFium, an optional dependency: the text of its pages becomes the passages of one article.

PDFium says where each character stands (:mod:`~posology.corpus.pdf.process`); lines, columns and tables are found from
that (:mod:`~posology.corpus.pdf.layout`), then running heads, paragraphs and the title. The text is what this reads, which
may not be what a page shows; a quote verifies against it.
"""

from posology.corpus.pdf.reader import SUFFIXES, count, read, require

__all__ = ["SUFFIXES", "count", "read", "require"]
