"""Why a file cannot be read, in words that fit behind its name."""

from __future__ import annotations


def sentence(reason: str) -> str:
    """Zlib's and the system's words, without their punctuation."""
    return reason.strip().rstrip(".") or "cannot be read"
