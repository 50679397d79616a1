"""Compressors that leave whole sentences."""

from __future__ import annotations

from strategies.compression import COMPRESSORS
from tests.contract.compressors.contract import CompressorContract, names_of
from tests.support.compression_harnesses import HARNESSES, Unit


class TestSentences(CompressorContract):
    names = names_of(Unit.SENTENCES)


def test_every_compressor_has_a_harness() -> None:
    assert set(HARNESSES) == set(COMPRESSORS)
