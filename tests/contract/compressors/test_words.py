"""Compressors that leave words."""

from __future__ import annotations

from tests.contract.compressors.contract import CompressorContract, names_of
from tests.support.compression_harnesses import Unit


class TestWords(CompressorContract):
    names = names_of(Unit.WORDS)
