"""LeanContext, tables 1 to 5: shortened contexts of 2, 4, 8 and 10 chunks, cascades, and kinds of states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from evals.papers.bioasq import Bench, Corpus, Literature, Question
from evals.papers.leancontext.learned import share, table
from evals.papers.suite import Answered, Asked, Given, Item, Published, Values
from evals.papers.tcra.answers import asked_of, of_first, right
from orchestrator.training.qtable.rewards import Said, quality
from policies.qtable import QTable
from posology.seams import Compressor, Rewriter
from posology.types import Compressed, Refusal, Retrieval
from strategies.compression import make
from strategies.compression.parts import Parts

WHOLE = "whole"
#: chunks that the Q-table learned with, and all that it is used with
LEARNED, CHUNKS = 8, (2, 4, 8, 10)
BY_TABLE = "Q-table"
DIFFERENCES = (
    (
        "BioASQ's questions over their experts' snippets, of the part that the packaged cross-encoder never saw, in place of "
        "arXiv and BBC articles of March 2023. A chunk is one article's snippets, 285 characters in the mean (paper: 500)."
    ),
    "References are the experts' answers in sentences; the paper's are generated from the chunks.",
    "The rest of the sentences is reduced by the n-grams of the corpus, not GPT-2 (`POSOLOGY_SELF_INFORMATION`).",
    (
        "The Q-table also knows the action *compress nothing*. It learned from 60 other questions at N = 8, by the offline "
        "reader by likeness; states are those of the retrieval, not of one embedding of the context."
    ),
    (
        "The baselines that need a language model (CQSumDP, semantic compression, T5) are left out: they are the compressors "
        "`query_summary`, `semantic_rewrite` and `summarization` of `posology eval`."
    ),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Workshop:
    """Makes compressors and Q-tables, each once."""

    bench: Bench
    given: Given

    @cached_property
    def _made(self) -> dict[str, Compressor]:
        return {}

    @cached_property
    def _tables(self) -> dict[str, QTable]:
        return {}

    def compressor(self, name: str) -> Compressor:
        """Return a compressor that spends nothing."""
        if name not in self._made:
            found = make(name, Parts(embedder=lambda: self.bench.embedder))
            assert not isinstance(found, Rewriter)
            self._made[name] = found
        return self._made[name]

    def share(self, retrieval: Retrieval, kind: str = "difference") -> float:
        """Return the share that the Q-table of a kind of states keeps."""
        if kind not in self._tables:
            self._tables[kind] = table(self.given.data, self.given.work, kind)
        return share(self._tables[kind], retrieval)

    def shortened(self, name: str, retrieval: Retrieval, keep: float | None) -> Retrieval:
        """Return what a compressor leaves of a retrieval."""
        if keep == 1 or not retrieval.passages:
            return retrieval
        return left(retrieval, self.compressor(name)(retrieval, keep))


def left(retrieval: Retrieval, compressed: Compressed) -> Retrieval:
    """Return a retrieval of which readers are shown what a compressor left."""
    spans = {one.passage.id: one.sentences for one in compressed.excerpts}
    return replace(
        retrieval,
        passages=tuple(
            replace(one, sentences=spans[one.passage.id])
            for one in retrieval.passages
            if one.passage.id in spans
        ),
    )


#: leaves what is shown of a context
Method = Callable[[Workshop, Retrieval], Retrieval]


def fixed(name: str, keep: float | None) -> Method:
    """Return a compressor with a share, or with its own."""
    return lambda shop, retrieval: shop.shortened(name, retrieval, keep)


def learned(name: str, kind: str = "difference") -> Method:
    """Return a compressor with the share of a Q-table."""
    return lambda shop, retrieval: shop.shortened(name, retrieval, shop.share(retrieval, kind))


def cascade(name: str) -> Method:
    """Return a cascade whose nearest sentences are as many as a Q-table says, and another method for the rest."""

    def shortened(shop: Workshop, retrieval: Retrieval) -> Retrieval:
        keep = shop.share(retrieval)
        return retrieval if keep == 1 else shop.shortened(f"top+{name}", retrieval, keep)

    return shortened


def held_out(corpus: Corpus) -> Sequence[Question]:
    """Return the questions with an answer in sentences that the packaged cross-encoder never saw."""
    return [one for one in corpus.part("test") if one.ideal]


class Table(Literature):
    """A table of LeanContext."""

    paper = "LeanContext"
    questions = 60
    readers = ("offline",)
    measures = MappingProxyType(
        {
            "ROUGE-1": "F of the answer's stemmed words, by the nearest of the experts' answers; a refusal has 0",
            "right": "of questions with exact answers: the answer has all words of one; of a simulated model, of all "
            "questions: it cites the gold",
            "refused": "share of questions that are refused",
            "input": "tokens of the prompt",
            "context": "sentences' characters that are shown, as a share of the whole context's",
        }
    )
    differences = DIFFERENCES
    #: by arm
    methods: Mapping[str, Method]
    #: passages a question
    chunks: Sequence[int] = (LEARNED,)

    def arm(self, method: str, n: int) -> str:
        """Return the name of an arm."""
        return f"{method}, N = {n}" if len(self.chunks) > 1 else method

    def items(self, given: Given) -> list[Item]:
        """Return every question with every number of chunks by every method."""
        bench, asked = self.bench(given, held_out)
        found = bench.retrieve(asked, max(self.chunks), "dense")
        shop = Workshop(bench=bench, given=given)
        return [
            Item(
                question=one.id,
                arm=self.arm(name, n),
                content=(one, of_first(found[one.id], n), method, shop),
            )
            for one in asked
            for n in self.chunks
            for name, method in self.methods.items()
        ]

    def asked(self, item: Item) -> Asked:
        """Return an item as a reader is asked."""
        question, retrieval, method, shop = item.content
        return asked_of(question, method(shop, retrieval))

    def graded(self, item: Item, asked: Asked, answered: Answered) -> Values:
        """Return the measures of an answer."""
        question, before, _, _ = item.content
        simulated = answered.profile is not None
        said = Said.by(answered.outcome)
        references = [Said(text=one) for one in question.ideal]
        return {
            # a simulated model has no words of its own
            "ROUGE-1": None if simulated else quality(said, references, "rouge1"),
            "right": float(right(question, asked, answered))
            if simulated or question.answers
            else None,
            "refused": float(isinstance(answered.outcome, Refusal)),
            "input": float(answered.input_tokens),
            "context": _characters(asked.task.retrieval) / max(1, _characters(before)),
        }


def _characters(retrieval: Retrieval) -> int:
    return sum(s.end - s.start for one in retrieval.passages for s in one.sentences)


def _rouge(arm: str, value: float, of: str, source: str) -> Published:
    return Published(arm=arm, measure="ROUGE-1", value=value, of=of, source=source)


def _tables_1_2_4() -> tuple[Published, ...]:
    model = "GPT-3.5"
    found: list[Published] = []
    for n, whole, learned_, selective, sbert, place in (
        (2, 0.5370, 0.4556, 0.4614, 0.4825, "table 4 (BBC)"),
        (4, 0.3985, 0.3844, 0.2945, 0.2563, "table 1 (arXiv)"),
        (4, 0.5489, 0.4856, 0.4726, 0.4626, "table 4 (BBC)"),
        (8, 0.5498, 0.5233, 0.4740, 0.4261, "table 2 (BBC)"),
        (10, 0.5423, 0.5318, 0.4825, 0.4164, "table 4 (BBC)"),
    ):
        found += [
            _rouge(f"{name}, N = {n}", value, model, place)
            for name, value in (
                (WHOLE, whole),
                (f"LeanContext, {BY_TABLE}", learned_),
                ("Selective Context, 0.5", selective),
                ("SBert", sbert),
            )
        ]
    found += [
        _rouge("LeanContext, fixed 0.1, N = 4", 0.2305, model, "table 1 (arXiv)"),
        _rouge("LeanContext, fixed 0.1, N = 8", 0.5017, model, "table 2 (BBC)"),
    ]
    return tuple(found)


class Numbers(Table):
    """One Q-table, learned at eight chunks, with two to ten."""

    name = "leancontext"
    title = "shortened contexts of 2, 4, 8 and 10 chunks, by a Q-table that learned with 8"
    place = "tables 1, 2 and 4"
    chunks = CHUNKS
    methods = MappingProxyType(
        {
            WHOLE: fixed("leancontext", 1),
            f"LeanContext, {BY_TABLE}": learned("leancontext"),
            "LeanContext, fixed 0.1": fixed("leancontext", 0.1),
            "Selective Context, 0.5": fixed("selective_context", 0.5),
            "SBert": fixed("extractive_summary", None),
        }
    )
    published = _tables_1_2_4()


class Cascades(Table):
    """Nearest sentences before another method."""

    name = "leancontext-cascades"
    title = "nearest sentences kept whole before another method"
    place = "table 3"
    methods = MappingProxyType(
        {
            WHOLE: fixed("leancontext", 1),
            "SBert": fixed("extractive_summary", None),
            "SBert, nearest 0.1": fixed("top:0.1+extractive_summary", None),
            f"SBert, nearest by {BY_TABLE}": cascade("extractive_summary"),
            "Selective Context, 0.5": fixed("selective_context", 0.5),
            "Selective Context, nearest 0.1": fixed("top:0.1+selective_context", None),
            f"Selective Context, nearest by {BY_TABLE}": cascade("selective_context"),
            f"LeanContext, {BY_TABLE}": learned("leancontext"),
        }
    )
    published = tuple(
        _rouge(arm, value, "GPT-3.5", "table 3 (BBC)")
        for arm, value in (
            (WHOLE, 0.5498),
            ("SBert", 0.4261),
            ("SBert, nearest 0.1", 0.5072),
            (f"SBert, nearest by {BY_TABLE}", 0.5200),
            (f"LeanContext, {BY_TABLE}", 0.5233),
        )
    )


class States(Table):
    """Kinds of states, for the nearest sentences alone."""

    name = "leancontext-states"
    title = "Q-tables of three kinds of states, nearest sentences alone"
    place = "table 5"
    methods = MappingProxyType(
        {
            WHOLE: fixed("leancontext", 1),
            "cosine": learned("leancontext_top", "cosine"),
            "difference": learned("leancontext_top", "difference"),
            "concatenation": learned("leancontext_top", "concatenation"),
        }
    )
    published = tuple(
        _rouge(arm, value, "GPT-3.5", "table 5 (arXiv)")
        for arm, value in (
            (WHOLE, 0.3945),
            ("cosine", 0.3443),
            ("difference", 0.3553),
            ("concatenation", 0.3400),
        )
    )
