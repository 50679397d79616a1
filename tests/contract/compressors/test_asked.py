"""Compressors that let a model write."""

from __future__ import annotations

from tests.contract.compressors.contract import RewriterContract, names_of
from tests.support.compression_harnesses import Unit


class TestAsked(RewriterContract):
    names = names_of(Unit.ASKED)
