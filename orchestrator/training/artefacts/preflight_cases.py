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
from orchestrator.training.calibration.learning import disagrees, held_ranking
from policies.preflight import PREFIX, SPOTLIGHT, observe
from policies.preflight_features import WEIGHTS, candidates
from posology.index.build.ingest import ingest
from posology.index.build.quick import QuickRowBuilder
from posology.index.build.rows import RowSource
from posology.index.embedders import load
from posology.index.search.bm25 import rerank
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.seams import Embedder, Reranker, TokenCodec
from posology.types import MODES, Encoded, Passage, Query, Retrieval, Retrieved, Sentence
from strategies.compression.late.codec import LateCodec
from strategies.compression.late.pruner import LateReranker

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
    """Embedder for retrievals of which only the order counts: vectors of sentences are zeros."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dim = embedder.name, embedder.dim
        self.embed_queries = embedder.embed_queries
        self.encode_query = embedder.encode_query

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: TokenCodec | None = None,  # noqa: ARG002 (the protocol's)
    ) -> list[Encoded]:
        """Return zeros of the right shapes."""
        return [
            Encoded(
                vector=np.zeros(self.dim, np.float32),
                sentence_vectors=np.zeros((len(of), self.dim), np.float32),
            )
            for _, of in zip(passages, sentences, strict=True)
        ]


async def gather(data: Path, index: Path) -> Cases:
    """Retrieve passages for every question of both sets, in every order of :func:`orders`.

    If the index is missing, it is built from the given passage vectors, without sentence vectors: one or two minutes
    instead of forty. The pruner's order needs those of fifty passages a question, which takes most of the time.
    """
    if missing := [name for name in FILES if not (data / name).exists()]:
        sys.exit(f"{data} has no {missing[0]}. Pass --data with the folder of the data sets.")
    embedder, codec = load(), LateCodec.packaged()
    if not (index / "complete").exists():
        build(data, index, embedder, codec)
    opened = Index.open(index / "index")
    asked = {"PubMedQA": pubmedqa(data), "SciFact": scifact(data)}
    plain = Retriever(opened, _WithoutSentences(embedder))
    pruner = LateReranker()
    pruned = Retriever(opened, embedder, pruner, codec=lambda: codec)
    questions = [(name, question) for name, of in asked.items() for question in of]
    named = orders(pruner)
    issue: dict[str, list[bool]] = {order: [] for order in named}
    absent: dict[tuple[str, int], list[bool]] = {(o, k): [] for o in named for k in DEPTHS}
    held: dict[tuple[str, int], list[bool]] = {key: [] for key in absent}
    features: dict[tuple[str, int], list[dict[str, Any]]] = {key: [] for key in absent}
    among: dict[int, list[tuple[NDArray[np.float64], NDArray[np.bool_]]]] = {k: [] for k in DEPTHS}
    for number, (_, question) in enumerate(questions):
        query = make_query(question.text)
        found: dict[str, Retrieval] = {
            mode: await plain.retrieve(query, max(DEPTHS), mode) for mode in MODES
        }
        found[named[-1]] = await pruned.retrieve(query, max(DEPTHS))
        if number < _CHECKED:
            await _check(plain, query, found["fused"], found["dense"])
        for order, retrieval in found.items():
            for depth, cut in _cuts(retrieval, found["dense"]):
                ids = [one.passage.id for one in cut.passages]
                absent[order, depth].append(not question.gold & set(ids))
                held[order, depth].append(disagrees(cut, held_ranking(order)))
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
        held={key: np.array(of) for key, of in held.items()},
        features=features,
        candidates=among,
        digest=_digest([question for _, question in questions]),
        embedder=embedder.name,
        pool=opened.count(),
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
        reranked=None if retrieval.reranked is None else retrieval.reranked.top(depth),
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
