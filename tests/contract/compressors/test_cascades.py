"""Compressors that keep some sentences whole, and let another compressor cut the rest."""

from __future__ import annotations

from tests.contract.compressors.contract import RewriterContract, names_of
from tests.support.compression_harnesses import Unit


class TestCascades(RewriterContract):
    names = names_of(Unit.TOP)
