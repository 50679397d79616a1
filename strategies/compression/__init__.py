"""Compressors: what of the passages is left to read. A new one is a file here and a line in ``COMPRESSORS``."""

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

#: name → how to make it
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
        summarization.NAME: summarization.make,
        provence.NAME: provence.make,
        query_summary.NAME: lambda _: query_summary.QuerySummary(),
        semantic_rewrite.NAME: lambda _: semantic_rewrite.SemanticRewrite(),
    }
)
#: cascades within a cascade, at most: names come from outside
MOST_CASCADES = 3
#: what chooses the sentences that a cascade keeps whole, by what its name begins with
TOPS: Mapping[str, str] = MappingProxyType({"top": leancontext.TOP_NAME, "pruner": pruner.NAME})


def known(name: str) -> bool:
    """Whether there is a compressor of this name, or a cascade over one."""
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
    """The compressor of a name.

    Args:
        name: one of :data:`COMPRESSORS`; or a cascade's, one of :data:`TOPS`, the share of sentences that are
            kept whole, if it is not its own, and the name of what compresses the rest: ``top+NAME``,
            ``pruner:0.2+NAME``.
        parts: what it may need; ``None``: nothing is at hand.
        single: gives those of :data:`COMPRESSORS`, for whoever has them already: models are large, and a cascade
            is nothing beside its parts; ``None``: they are made of ``parts``.

    Raises:
        KeyError: there is no such compressor.
        ConfigurationError: a part that it needs is missing, or does not load.
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
