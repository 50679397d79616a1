"""Compressors: select or rewrite what a strategy shows of the passages.

A new one is a file here and a line in ``COMPRESSORS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from posology.seams import Compressor, Rewriter
from strategies.compression.cascade import cascade, parse
from strategies.compression.parts import Parts


def _of(module: str) -> Any:
    return import_module(f"{__name__}.{module}")


#: Maker of each compressor, by name; it imports the compressor's module.
COMPRESSORS: Mapping[str, Callable[[Parts], Compressor | Rewriter]] = MappingProxyType(
    {
        "leancontext": lambda _: _of("leancontext").LeanContext(),
        "leancontext_top": lambda _: _of("leancontext").LeanContext.top(),
        "pruner": lambda _: _of("late.pruner").Pruner(),
        "selective_context": lambda _: _of("selective_context").SelectiveContext(),
        "selective_context_sentence": lambda _: _of("selective_context").SelectiveSentences(),
        "selective_context_word": lambda parts: _of("selective_context").make_words(parts),
        "extractive_summary": lambda _: _of("extractive_summary").ExtractiveSummary(),
        "tcra_semantic": lambda parts: _of("tcra_semantic").make_exact(parts),
        "tcra_semantic_fast": lambda parts: _of("tcra_semantic").make_fast(parts),
        "tcra_semantic:guard=off": lambda parts: _of("tcra_semantic").make_bare(parts),
        "summarization": lambda parts: _of("summarization.compressor").make(parts),
        "provence": lambda parts: _of("provence").make(parts),
        "query_summary": lambda _: _of("rewriters.query_summary").QuerySummary(),
        "semantic_rewrite": lambda _: _of("rewriters.semantic_rewrite").SemanticRewrite(),
    }
)
#: Names of the prompts of each rewriter's calls, for the record of a decision.
PROMPTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"query_summary": ("summarise",), "semantic_rewrite": ("rewrite",)}
)
#: Maximum nesting of cascades; names come from outside.
MOST_CASCADES = 3
#: Compressor that chooses a cascade's whole sentences, by the first part of the cascade's name.
TOPS: Mapping[str, str] = MappingProxyType({"top": "leancontext_top", "pruner": "pruner"})


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
