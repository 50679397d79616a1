"""Reads pages of a PDF by OCR: a program of its own, which :mod:`posology.corpus.pdf.scans` runs.

Pictures come from anywhere, and PDFium, OpenCV and ONNX Runtime are native code: so it runs in a process whose memory is
limited, and whose processor time is for each page. It imports no other part of Posology but the directions and limits of
:mod:`posology.corpus.pdfium`. Models come out of rapidocr's package; nothing of it that could fetch one is called.

Standard input has numbers of pages, one a line, counted from 1. Each is answered by one JSON object on a line of standard
output, ``{"words": [...], "illegible": n}`` or ``{"wrong": reason}``; a word is as in :mod:`posology.corpus.pdfium`, its
text U+FFFD if it is not legible.
"""
