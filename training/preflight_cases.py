"""Questions with known key documents, and the preflight features of their retrievals."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orchestrator.settings import load_settings
from orchestrator.training.calibration.learning import disagrees, held_ranking
from policies import preflight_features
from policies.preflight import PREFIX, SPOTLIGHT, observe
from policies.preflight_features import WEIGHTS, candidates
from posology.index.build.ingest import ingest
from posology.index.build.rows import QuickRowBuilder, RowSource
from posology.index.embedders import load
from posology.index.search.bm25 import rerank
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.seams import Embedder, Reranker, TokenCodec
from posology.types import MODES, Encoded, Passage, Query, Ranking, Retrieval, Sentence
from strategies.compression.late.codec import LateCodec
from strategies.compression.late.pruner import LateReranker
from training.gold import Question, need, pubmedqa, scifact
from training.kept import Kept, Stored, kept_json, key_of

FILES = (
    "pool.jsonl.gz",
    "pool.minilm.f16.npy",
    "pubmedqa_train.jsonl.gz",
    "scifact_claims_train.jsonl.gz",
)
#: Numbers of passages.
DEPTHS = (8, 16, 32)
#: Questions whose cut retrievals are compared with the retriever's own.
_CHECKED = 5
_STEPS = 12
#: questions after which progress is printed
_TOLD = 100
#: what features are computed by: changed code computes them anew
_CODE = (inspect.getsource(preflight_features),)

#: JSON of one question in one order
_Row: TypeAlias = dict[str, Any]
_Votes: TypeAlias = Mapping[int, Ranking]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Cases:
    """Retrievals of n questions, with every number of passages in every order."""

    #: set of each question, shape ``(n,)``
    sets: NDArray[np.str_]
    #: by order, shape ``(n,)``: whether no key document is among the first three
    issue: dict[str, NDArray[np.bool_]]
    #: by order and number of passages, shape ``(n,)``: whether no key document was retrieved at all
    absent: dict[tuple[str, int], NDArray[np.bool_]]
    #: by order and number of passages, shape ``(n,)``: whether the first of a held ranking is not among the first three
    held: dict[tuple[str, int], NDArray[np.bool_]]
    #: by order and number of passages: each question's features
    features: dict[tuple[str, int], list[dict[str, Any]]]
    #: by number of passages: each question's candidates in the dense order, shape ``(c, 3)``, by the methods
    #: of ``WEIGHTS``, and whether each is a key document, shape ``(c,)``
    candidates: dict[int, list[tuple[NDArray[np.float64], NDArray[np.bool_]]]]
    #: digest of the questions and their key documents
    digest: str
    #: name of the embedder of passages and questions
    embedder: str
    #: passages in the index
    pool: int

    def numbers(self, order: str, depth: int, names: Sequence[str]) -> NDArray[np.float64]:
        """Return features as a matrix, shape ``(n, len(names))``."""
        rows = self.features[order, depth]
        return np.array([[row[PREFIX + name] for name in names] for row in rows], np.float64)


class _WithoutSentences:
    """Embedder for retrievals of which only the order counts: sentences stay without vectors."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dim = embedder.name, embedder.dim
        self.embed_queries = embedder.embed_queries
        self.encode_query = embedder.encode_query

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],  # noqa: ARG002 (the protocol's)
        codec: TokenCodec | None = None,  # noqa: ARG002
    ) -> list[Encoded]:
        """Return empty encodings."""
        nothing = Encoded(
            vector=np.zeros(self.dim, np.float32),
            sentence_vectors=np.zeros((0, self.dim), np.float32),
        )
        return [nothing] * len(passages)


async def gather(data: Path, index: Path, *, reranked: bool = True) -> Cases:
    """Retrieve passages for every question of both sets, in every order of :func:`orders`.

    If the index is missing, it is built from the given passage vectors, without sentence vectors: one or two minutes
    instead of forty. The pruner's order needs those of fifty passages a question, 23,118 different ones in all: about
    forty minutes of one core. They are encoded once and kept beside the index, and so are the features of every
    question, so that an interrupted run resumes.

    Args:
        data: folder of the data sets.
        index: folder of the index.
        reranked: whether to gather the pruner's order, too.
    """
    need(data, *FILES)
    embedder, codec = load(options=load_settings().embedding), LateCodec.packaged()
    if not (index / "complete").exists():
        build(data, index, embedder, codec)
    opened = Index.open(index / "index")
    store = Kept(index / "kept.sqlite")
    asked = {"PubMedQA": pubmedqa(data), "SciFact": scifact(data)}
    plain = Retriever(opened, _WithoutSentences(embedder))
    pruner = LateReranker()
    pruned = Retriever(opened, Stored(embedder, store), pruner, codec=lambda: codec)
    questions = [(name, question) for name, of in asked.items() for question in of]
    by_order: dict[str, list[_Row]] = {order: [] for order in orders(pruner)}
    version = opened.view_at(None).version
    # all modes first: the pruner's order takes ten times as long
    for number, (_, question) in enumerate(questions):
        key = key_of(_CODE, version, embedder.name, "modes", question.text, sorted(question.gold))
        rows = await kept_json(
            store, key, partial(_modes, plain, question, check=number < _CHECKED)
        )
        for order in MODES:
            by_order[order].append(rows[order])
        _tell("modes", number + 1, len(questions))
    last = orders(pruner)[-1]
    for number, (_, question) in enumerate(questions if reranked else ()):
        key = key_of(_CODE, version, embedder.name, last, question.text, sorted(question.gold))
        row = await kept_json(store, key, partial(_reranked, plain, pruned, question))
        by_order[last].append(row)
        _tell(last, number + 1, len(questions))
    store.close()
    if not reranked:
        del by_order[last]
    return _cases(by_order, questions, embedder.name, opened.count())


def _tell(order: str, done: int, of: int) -> None:
    if done % _TOLD == 0 or done == of:
        print(f"{order}: {done} of {of} questions", file=sys.stderr)


async def _modes(plain: Retriever, question: Question, *, check: bool) -> dict[str, _Row]:
    """Return the features of a question in the order of every mode."""
    query = make_query(question.text)
    encoded = plain.embedder.encode_query(query.text)
    found = {
        mode: await plain.retrieve(query, max(DEPTHS), mode, encoded=encoded) for mode in MODES
    }
    votes = _votes(found["dense"])
    if check:
        await _check(plain, query, found["fused"], votes)
    return {mode: _row(retrieval, votes, question) for mode, retrieval in found.items()}


async def _reranked(plain: Retriever, pruned: Retriever, question: Question) -> _Row:
    """Return the features of a question in the pruner's order."""
    query = make_query(question.text)
    encoded = plain.embedder.encode_query(query.text)
    dense = await plain.retrieve(query, max(DEPTHS), "dense", encoded=encoded)
    retrieval = await pruned.retrieve(query, max(DEPTHS), encoded=encoded)
    return _row(retrieval, _votes(dense), question)


def _row(retrieval: Retrieval, votes: _Votes, question: Question) -> _Row:
    """Return the features of one order, for every number of passages."""
    cuts = []
    for _, cut in _cuts(retrieval, votes):
        ids = [one.passage.id for one in cut.passages]
        names, by = candidates(cut)
        cuts.append(
            {
                "absent": not question.gold & set(ids),
                "held": disagrees(cut, held_ranking(str(retrieval.order))),
                "features": observe(cut),
                "scores": [by[method] for method in WEIGHTS],
                "keys": [name in question.gold for name in names],
            }
        )
    first = {one.passage.id for one in retrieval.passages[:SPOTLIGHT]}
    return {"issue": not question.gold & first, "cuts": cuts}


def _cases(
    by_order: Mapping[str, Sequence[_Row]],
    questions: Sequence[tuple[str, Question]],
    embedder: str,
    pool: int,
) -> Cases:
    cuts = {
        (order, depth): [row["cuts"][place] for row in of]
        for order, of in by_order.items()
        for place, depth in enumerate(DEPTHS)
    }
    return Cases(
        sets=np.array([name for name, _ in questions]),
        issue={order: np.array([row["issue"] for row in of]) for order, of in by_order.items()},
        absent={key: np.array([cut["absent"] for cut in of]) for key, of in cuts.items()},
        held={key: np.array([cut["held"] for cut in of]) for key, of in cuts.items()},
        features={key: [cut["features"] for cut in of] for key, of in cuts.items()},
        candidates={
            depth: [
                (np.array(cut["scores"]).T, np.array(cut["keys"])) for cut in cuts["dense", depth]
            ]
            for depth in DEPTHS
        },
        digest=_digest([question for _, question in questions]),
        embedder=embedder,
        pool=pool,
    )


def orders(pruner: Reranker) -> tuple[str, ...]:
    """Return the names of the orders that have a packaged model: every mode, and the fused one re-ranked."""
    return (*MODES, f"{pruner.name} of fused")


def build(data: Path, where: Path, embedder: Embedder, codec: TokenCodec) -> None:
    """Build the index of the pool with its given vectors; sentences and tokens are encoded when they are needed."""
    index = Index.open_or_create(where / "index", embedder.name, embedder.dim, codec=codec)
    source = RowSource(
        embedder=embedder,
        codec=codec,
        builder=QuickRowBuilder(embedder=embedder, annotator=None),
        batch=4096,
    )
    report = ingest([data / FILES[0]], index, source, vectors=data / FILES[1])
    if report.bad or report.bad_files:
        sys.exit(f"{report.bad} records and {len(report.bad_files)} files cannot be read")
    (where / "complete").touch()


def _votes(dense: Retrieval) -> _Votes:
    """Return by number of passages BM25 among the nearest: the same for every order."""
    passages = [one.passage for one in dense.passages]
    return {depth: rerank(dense.query.text, passages[:depth]) for depth in DEPTHS}


def _cuts(retrieval: Retrieval, votes: _Votes) -> Iterator[tuple[int, Retrieval]]:
    """Yield the retrieval cut to each number of passages."""
    for depth in DEPTHS:
        yield (
            depth,
            replace(
                retrieval,
                passages=retrieval.passages[:depth],
                dense=retrieval.dense.top(depth),
                bm25=retrieval.bm25.top(depth),
                fused=retrieval.fused.top(depth),
                bm25_rerank=votes[depth],
                reranked=None if retrieval.reranked is None else retrieval.reranked.top(depth),
            ),
        )


async def _check(retriever: Retriever, query: Query, fused: Retrieval, votes: _Votes) -> None:
    """Exit if a cut retrieval differs from the retriever's own."""
    for depth, cut in _cuts(fused, votes):
        given = await retriever.retrieve(query, depth, "fused")
        if observe(given) != observe(cut):
            sys.exit(f"retrieving {depth} passages is not what was computed for {query.text!r}")


def _digest(questions: Sequence[Question]) -> str:
    content = json.dumps([[question.text, sorted(question.gold)] for question in questions])
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def likeliest_weights(cases: Cases, depth: int, of: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the maximum-likelihood weights of key documents among the candidates, by Newton's method.

    A conditional logit over the questions ``of`` which a key document was retrieved; shape ``(3,)``, in the
    order of ``WEIGHTS``.
    """
    asked = [pair for pair, wanted in zip(cases.candidates[depth], of, strict=True) if wanted]
    # so that no step begins where every share is 0 or 1
    weights = np.array([10.0, 0.1, 0.1])
    for _ in range(_STEPS):
        slope, curve = np.zeros(3), np.zeros((3, 3))
        for scores, keys in asked:
            if not keys.any():
                continue
            shares = np.exp(scores @ weights - (scores @ weights).max())
            for some, sign in ((shares, 1), (shares * keys, -1)):
                expected = some @ scores / some.sum()
                slope -= sign * expected
                apart = scores - expected
                curve += sign * (apart.T * (some / some.sum())) @ apart
        weights = weights + np.linalg.solve(curve, slope)
    return weights
