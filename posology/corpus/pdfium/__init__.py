"""Prints the words of a PDF with their places: a program of its own, which :mod:`posology.corpus.pdf.process` runs.

PDFium is native code that reads files from anywhere. So it runs in a process whose memory and processor time are
limited, and a crash ends that process alone. It imports no other part of Posology and begins within 0.1 s.

Standard output has one JSON object per line: first ``{"pages": n, "title": s}`` or ``{"unreadable": reason}``, then one
object per page, ``{"words": [...], "hidden": n, "unlooked": n, "drawn": b, "scanned": b, "rules": [...]}`` or ``{"wrong": reason}``. A word is ``[turn, bold, runs]``, and a run is
``[text, x0, x1, top, base, bottom, size, signs]`` in points, as if its page were turned so that the word is upright; ``y`` grows
downwards. ``turn`` is its direction in degrees, clockwise, and ``size`` that of its type. A raised or lowered part of a word is a run of its own. ``signs``
is the name of a font that shows signs instead of letters, else empty. A glyph without Unicode is U+FFFD. ``hidden`` is the
number of characters that the page does not show, which no word has; ``unlooked`` that of those which have the color of paper
or stand on a layer, and were not looked at, since a file of many such pages takes long to draw. ``drawn`` is whether the page shows anything, and ``scanned`` whether pictures
fill most of it. ``rules`` are the level and upright lines of a page that has the word Table, ``[turn, x0, y0, x1, y1]`` for each ``turn`` of
its words, else ``null``.
"""
