"""Questions with known key documents, and the preflight features of their retrievals."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.training.artefacts.gold import Question, pubmedqa, scifact
from policies.preflight import ORDERS, PREFIX, SPOTLIGHT, observe
from policies.preflight_features import WEIGHTS, candidates
from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.embedders import load
from posology.index.search.bm25 import rerank
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.seams import Embedder, TokenCodec
from posology.types import Encoded, Mode, Passage, Query, Retrieval, Retrieved, Sentence

FILES = (
    "pool.jsonl.gz",
    "pool.minilm.f16.npy",
    "pubmedqa_train.jsonl.gz",
    "scifact_claims_train.jsonl.gz",
)
#: Numbers of passages.
DEPTHS = (8, 16, 32)
_MODES: tuple[Mode, ...] = ("fused", "dense", "bm25")
#: Questions whose cut retrievals are compared with the retriever's own.
_CHECKED = 5
_STEPS = 12


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Cases:
    """Retrievals of n questions, with every number of passages in every order."""

    #: set of each question, shape ``(n,)``
    sets: NDArray[np.str_]
    #: by order, shape ``(n,)``: whether no key document is among the first three
    issue: dict[str, NDArray[np.bool_]]
    #: by order and number of passages, shape ``(n,)``: whether no key document was retrieved at all
    absent: dict[tuple[str, int], NDArray[np.bool_]]
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
    """Embedder for passages whose vectors are given: its own are empty or replaced."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dim = embedder.name, embedder.dim
        self.embed_queries = embedder.embed_queries
        self.encode_query = embedder.encode_query

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],  # noqa: ARG002 (the protocol's)
        codec: TokenCodec | None = None,  # noqa: ARG002 (the protocol's)
    ) -> list[Encoded]:
        """Return empty vectors of the right shapes."""
        nothing = Encoded(
            vector=np.zeros(self.dim, np.float32),
            sentence_vectors=np.zeros((0, self.dim), np.float32),
        )
        return [nothing for _ in passages]


async def gather(data: Path, index: Path) -> Cases:
    """Retrieve passages for every question of both sets.

    If the index is missing, it is built from the given passage vectors, without sentence vectors: one or two minutes
    instead of forty. It is unsuitable for answering questions.
    """
    if missing := [name for name in FILES if not (data / name).exists()]:
        sys.exit(f"{data} has no {missing[0]}. Pass --data with the folder of the data sets.")
    embedder = load()
    if not (index / "complete").exists():
        build(data, index, embedder)
    opened = Index.open(index / "index")
    asked = {"PubMedQA": pubmedqa(data), "SciFact": scifact(data)}
    retriever = Retriever(opened, embedder)
    questions = [(name, question) for name, of in asked.items() for question in of]
    issue: dict[str, list[bool]] = {order: [] for order in ORDERS}
    absent: dict[tuple[str, int], list[bool]] = {(o, k): [] for o in ORDERS for k in DEPTHS}
    features: dict[tuple[str, int], list[dict[str, Any]]] = {key: [] for key in absent}
    among: dict[int, list[tuple[NDArray[np.float64], NDArray[np.bool_]]]] = {k: [] for k in DEPTHS}
    for number, (_, question) in enumerate(questions):
        query = make_query(question.text)
        found = {mode: await retriever.retrieve(query, max(DEPTHS), mode) for mode in _MODES}
        if number < _CHECKED:
            await _check(retriever, query, found["fused"], found["dense"])
        for order, retrieval in found.items():
            for depth, cut in _cuts(retrieval, found["dense"]):
                ids = [one.passage.id for one in cut.passages]
                absent[order, depth].append(not question.gold & set(ids))
                features[order, depth].append(observe(cut))
                if order == "dense":
                    names, by = candidates(cut)
                    keys = np.array([name in question.gold for name in names])
                    among[depth].append((np.array([by[m] for m in WEIGHTS]).T, keys))
            issue[order].append(not question.gold & set(ids[:SPOTLIGHT]))
    return Cases(
        sets=np.array([name for name, _ in questions]),
        issue={order: np.array(of) for order, of in issue.items()},
        absent={key: np.array(of) for key, of in absent.items()},
        features=features,
        candidates=among,
        digest=_digest([question for _, question in questions]),
        embedder=embedder.name,
        pool=opened.count(),
    )


def build(data: Path, where: Path, embedder: Embedder) -> None:
    """Build the index of the pool with its given vectors."""
    index = Index.open_or_create(where / "index", embedder.name, embedder.dim)
    given = _WithoutSentences(embedder)
    report = ingest(
        [data / FILES[0]], index, RowSource(embedder=given, batch=4096), vectors=data / FILES[1]
    )
    if report.bad or report.bad_files:
        sys.exit(f"{report.bad} records and {len(report.bad_files)} files cannot be read")
    (where / "complete").touch()


def _cuts(retrieval: Retrieval, dense: Retrieval) -> Iterator[tuple[int, Retrieval]]:
    """Yield the retrieval cut to each number of passages."""
    for depth in DEPTHS:
        yield depth, _cut(retrieval, depth, dense.passages)


def _cut(retrieval: Retrieval, depth: int, dense: Sequence[Retrieved]) -> Retrieval:
    return replace(
        retrieval,
        passages=retrieval.passages[:depth],
        dense=retrieval.dense.top(depth),
        bm25=retrieval.bm25.top(depth),
        fused=retrieval.fused.top(depth),
        bm25_rerank=rerank(retrieval.query.text, [one.passage for one in dense[:depth]]),
    )


async def _check(retriever: Retriever, query: Query, fused: Retrieval, dense: Retrieval) -> None:
    """Exit if a cut retrieval differs from the retriever's own."""
    for depth, cut in _cuts(fused, dense):
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
