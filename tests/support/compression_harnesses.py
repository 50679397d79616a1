"""How the contract suite builds each compressor: with tiny models of its own, and what it may expect of it.

Keyed by the names of ``COMPRESSORS``: a compressor without an entry here fails the suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from types import MappingProxyType

import anyio

from posology.index.embedders import load as load_embedder
from posology.llm.structured import Structured
from posology.seams import Compressor, Rewriter
from posology.testing import (
    HashEmbedder,
    ScriptedModel,
    save_tiny_encoder,
    save_tiny_reranker,
    save_tiny_summarizer,
)
from posology.types import Call, Compressed, Retrieval, Task
from prompts.rewrite import RewriteReply, Rewritten, Summary, SummaryReply
from strategies.compression import make
from strategies.compression.parts import Parts
from strategies.compression.self_information.annotator import NgramScorer
from strategies.compression.summarization.card import Card, write_card
from tests.support.compression import WRITTEN
from tests.support.compression_tokens import coded

#: what a model says that no source bears out, and what none denies
MADE_UP, WRITTEN_ANEW = "The dose was 987 mg.", "Several outcomes were looked at."
#: whom the calls of a rewriter are addressed to
MODEL = "openai:test"


class Unit(Enum):
    """What ``keep`` is a share of, and how exactly it is honoured."""

    #: whole sentences, rounded up
    SENTENCES = auto()
    #: words, but for those that may not be parted from a word that stays
    WORDS = auto()
    #: the length that a model is asked for, which it need not give
    ASKED = auto()
    #: whole sentences, and of the others whatever another compressor leaves
    TOP = auto()


def as_it_is(retrieval: Retrieval) -> Retrieval:
    """A retrieval as an index with an annotator gives it."""
    return retrieval


def nothing(_: Path) -> Parts:
    """No parts."""
    return Parts()


def counted(_: Path) -> Parts:
    """N-grams of what was written for these tests."""
    return Parts(scorer=_ngrams)


def hashed(_: Path) -> Parts:
    """An embedder that reads words alone."""
    return Parts(embedder=lambda: HashEmbedder(dim=64))


def encoded(folder: Path) -> Parts:
    """A tiny encoder of random weights, whose tokens have vectors."""
    place = save_tiny_encoder(folder)
    return Parts(embedder=lambda: load_embedder(str(place)))


def summarizing(folder: Path) -> Parts:
    """A tiny mT5, which writes nonsense."""
    write_card(Card(share=0.5, tokens=32), save_tiny_summarizer(folder))
    return Parts(models={"summarization": str(folder)})


def pruning(folder: Path) -> Parts:
    """A tiny cross-encoder with two heads of random weights."""
    import torch

    from strategies.compression.provence.checkpoint import load, save

    checkpoint = load(str(save_tiny_reranker(folder / "reranker")))
    torch.manual_seed(1)
    with torch.no_grad():
        checkpoint.model.token_head.weight.normal_(0, 0.5)
    save(checkpoint.model, checkpoint.tokenizer, folder / "pruner", {"made": "by a test"})
    return Parts(models={"provence": str(folder / "pruner")})


def summaries(call: Call) -> str:
    """A sentence of each passage copied, others made up, and a passage that there is none of."""
    written = [Summary(passage=f"P{i}", summary=text) for i, text in _written(call)]
    return SummaryReply(summaries=written).model_dump_json()


def rewritten(call: Call) -> str:
    """The same in the other prompt's form."""
    written = [Rewritten(passage=f"P{i}", text=text) for i, text in _written(call)]
    return RewriteReply(passages=written).model_dump_json()


def _written(call: Call) -> Iterator[tuple[int, str]]:
    for i, excerpt in enumerate(call.excerpts, start=1):
        copied = excerpt.sentences[0].of(excerpt.passage.text)
        yield i, f"{copied} {MADE_UP} {WRITTEN_ANEW}"
    yield 99, "There is no such passage."


def _ngrams() -> NgramScorer:
    scorer = NgramScorer()
    scorer.learn(WRITTEN)
    return scorer


@dataclass(frozen=True, kw_only=True, slots=True)
class Harness:
    """How one compressor is built and fed."""

    #: what it is made from; models are saved in the folder that is given
    parts: Callable[[Path], Parts] = nothing
    unit: Unit = Unit.SENTENCES
    #: how often a property is tried: seldom where a model writes
    examples: int = 12
    #: adds to a retrieval what its index has
    prepare: Callable[[Retrieval], Retrieval] = as_it_is
    #: what a model says to a call; ``None``: it is no :class:`~posology.seams.Rewriter`
    reply: Callable[[Call], str] | None = None
    #: whether no fragment may be shown without its numbers, negations and drug names
    guarded: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """A compressor with how it is fed, called alike whether or not it spends."""

    name: str
    compressor: Compressor | Rewriter
    harness: Harness

    @property
    def reader(self) -> Compressor:
        """As what spends nothing."""
        assert not isinstance(self.compressor, Rewriter)
        return self.compressor

    @property
    def writer(self) -> Rewriter:
        """As what spends."""
        assert isinstance(self.compressor, Rewriter)
        return self.compressor

    @property
    def spends(self) -> bool:
        """Whether it is a :class:`~posology.seams.Rewriter`."""
        return isinstance(self.compressor, Rewriter)

    @property
    def extractive(self) -> bool:
        """Whether all that it shows are to be the passages' own words."""
        return not self.spends and self.reader.extractive

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress what an index would give."""
        prepared = self.harness.prepare(retrieval)
        if not self.spends:
            return self.reader(prepared, keep)
        return anyio.run(self.writer, task(prepared), keep, Structured(self.model()))

    def model(self) -> ScriptedModel:
        """A model that replies as the harness says."""
        assert self.harness.reply is not None
        return ScriptedModel(self.harness.reply)


def task(retrieval: Retrieval) -> Task:
    """What a rewriter is given."""
    return Task(query=retrieval.query, retrieval=retrieval, model=MODEL, max_tokens=None)


#: by the names of ``COMPRESSORS``
HARNESSES: Mapping[str, Harness] = MappingProxyType(
    {
        "leancontext": Harness(),
        "leancontext_top": Harness(),
        "pruner": Harness(prepare=coded),
        "selective_context": Harness(unit=Unit.WORDS),
        "selective_context_sentence": Harness(),
        "selective_context_word": Harness(unit=Unit.WORDS, parts=counted),
        "extractive_summary": Harness(),
        "tcra_semantic": Harness(unit=Unit.WORDS, parts=hashed),
        "tcra_semantic:guard=off": Harness(unit=Unit.WORDS, parts=hashed, guarded=False),
        "tcra_semantic_fast": Harness(unit=Unit.WORDS, parts=encoded),
        "summarization": Harness(unit=Unit.ASKED, parts=summarizing, examples=3),
        "provence": Harness(parts=pruning, examples=8),
        "query_summary": Harness(unit=Unit.ASKED, reply=summaries),
        "semantic_rewrite": Harness(unit=Unit.ASKED, reply=rewritten),
    }
)
#: cascades: sentences that are kept whole, and each of these for the rest
CASCADES: Mapping[str, Harness] = MappingProxyType(
    {
        f"top+{name}": replace(HARNESSES[name], unit=Unit.TOP)
        for name in (
            "selective_context",
            "selective_context_word",
            "extractive_summary",
            "tcra_semantic",
            "summarization",
            "query_summary",
        )
    }
    | {
        "pruner:0.2+selective_context": replace(
            HARNESSES["selective_context"], unit=Unit.TOP, prepare=coded
        ),
        "top:0.3+semantic_rewrite": replace(HARNESSES["semantic_rewrite"], unit=Unit.TOP),
        "top+top+selective_context_sentence": replace(
            HARNESSES["selective_context_sentence"], unit=Unit.TOP
        ),
    }
)


#: those that ask a model
SPENDING = frozenset(
    name for name, harness in {**HARNESSES, **CASCADES}.items() if harness.reply is not None
)


def build(name: str, folder: Path) -> Made:
    """A compressor of ``COMPRESSORS``, or a cascade.

    Args:
        name: of it.
        folder: its models are saved there.

    Raises:
        AssertionError: it has no harness.
    """
    harness = HARNESSES.get(name) or CASCADES.get(name)
    assert harness is not None, (
        f"{name} has no harness: add how it is built to tests/support/compression_harnesses.py"
    )
    return Made(name=name, compressor=make(name, harness.parts(folder)), harness=harness)
