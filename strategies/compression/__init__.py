"""Compressors: select or rewrite what a strategy shows of the passages.

A new one is a file here and a line in ``COMPRESSORS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from posology.seams import Compressor, Rewriter
from strategies.compression import (
    extractive_summary,
    leancontext,
    provence,
    selective_context,
    tcra_semantic,
)
from strategies.compression.cascade import cascade, parse
from strategies.compression.late import pruner
from strategies.compression.parts import Parts
from strategies.compression.rewriters import query_summary, semantic_rewrite
from strategies.compression.summarization import compressor as summarization

#: Maker of each compressor, by name.
COMPRESSORS: Mapping[str, Callable[[Parts], Compressor | Rewriter]] = MappingProxyType(
    {
        leancontext.NAME: lambda _: leancontext.LeanContext(),
        leancontext.TOP_NAME: lambda _: leancontext.LeanContext.top(),
        pruner.NAME: lambda _: pruner.Pruner(),
        selective_context.NAME: lambda _: selective_context.SelectiveContext(),
        selective_context.SENTENCE_NAME: lambda _: selective_context.SelectiveSentences(),
        selective_context.WORD_NAME: selective_context.make_words,
        extractive_summary.NAME: lambda _: extractive_summary.ExtractiveSummary(),
        tcra_semantic.NAME: tcra_semantic.make_exact,
        tcra_semantic.FAST_NAME: tcra_semantic.make_fast,
        tcra_semantic.BARE_NAME: tcra_semantic.make_bare,
        summarization.NAME: summarization.make,
        provence.NAME: provence.make,
        query_summary.NAME: lambda _: query_summary.QuerySummary(),
        semantic_rewrite.NAME: lambda _: semantic_rewrite.SemanticRewrite(),
    }
)
#: Names of the prompts of each rewriter's calls, for the record of a decision.
PROMPTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {query_summary.NAME: ("summarise",), semantic_rewrite.NAME: ("rewrite",)}
)
#: Maximum nesting of cascades; names come from outside.
MOST_CASCADES = 3
#: Compressor that chooses a cascade's whole sentences, by the first part of the cascade's name.
TOPS: Mapping[str, str] = MappingProxyType({"top": leancontext.TOP_NAME, "pruner": pruner.NAME})


def known(name: str) -> bool:
    """Return whether a compressor, or a cascade over one, has this name."""
    for _ in range(MOST_CASCADES + 1):
        parsed = parse(name)
        if parsed is None:
            return name in COMPRESSORS
        if parsed.top not in TOPS:
            return False
        name = parsed.rest
    return False


def make(
    name: str,
    parts: Parts | None = None,
    *,
    single: Callable[[str], Compressor | Rewriter] | None = None,
) -> Compressor | Rewriter:
    """Return the compressor of a name.

    Args:
        name: one of :data:`COMPRESSORS`, or a cascade: one of :data:`TOPS`, optionally the share of sentences
            kept whole, and the name of the compressor of the rest, as in ``top+NAME`` and ``pruner:0.2+NAME``.
        parts: dependencies of compressors; ``None``: none.
        single: returns one of :data:`COMPRESSORS` by name, for callers that hold them already (models are
            large); ``None``: they are made from ``parts``.

    Raises:
        KeyError: no compressor has this name.
        ConfigurationError: a required part is missing or does not load.
    """
    if not known(name):
        raise KeyError(name)
    if single is None:
        own = parts or Parts()
        return make(name, single=lambda one: COMPRESSORS[one](own))
    parsed = parse(name)
    if parsed is None:
        return single(name)
    top = single(TOPS[parsed.top])
    if isinstance(top, Rewriter):
        raise KeyError(name)
    return cascade(name=name, top=top, rest=make(parsed.rest, single=single), keep=parsed.share)
