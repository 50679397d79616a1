"""Posology: question answering over the medical literature.

Every quote is verified, every model call accounted for.
"""

from __future__ import annotations

__version__ = "0.1.0"
