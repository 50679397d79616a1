"""What a title says of its article before it begins."""

from __future__ import annotations

import re

_RETRACTED = re.compile(r"\W{0,10}retracted(?: article| paper)?\s*[:\].–—]", re.IGNORECASE)


def says_retracted(title: str) -> bool:
    """Whether a title begins as publishers begin those of retracted articles: ``RETRACTED: …``, ``[Retracted] …``."""
    return _RETRACTED.match(title) is not None
