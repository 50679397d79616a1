"""Questions, retrievals and gold sentences that all compressors are measured on.

SQuAD questions about articles that the pruner was neither trained nor tuned on, over all paragraphs; and SciFact's
claims with rationales, each with its abstract and retrieved ones. Of the 200 claims, 68 are about abstracts that are
new to the pruner; they come first and are reported separately.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evals import pooled
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.index.store import Index
from posology.query import make_query
from posology.types import Ranking, Retrieval
from training import pruner_cases
from training.gold import rows as read

#: passages a question
K = 8
#: claims that can be asked
CLAIMS = 200
FILES = (
    pruner_cases.SQUAD,
    pruner_cases.POOL,
    pruner_cases.POOL_VECTORS,
    pruner_cases.CLAIMS,
)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Asked:
    """A question with what was retrieved for it, and which sentences bear the answer."""

    id: str
    retrieval: Retrieval
    #: by passage: the numbers of its sentences that bear the answer; a passage that was not retrieved is missing
    gold: dict[str, frozenset[int]]
    #: how the answer is written; none: there is no such string
    answers: tuple[str, ...]
    #: the document that it is about: questions about one document are not independent
    document: str
    #: whether the pruner was neither trained nor chosen on that document
    aside: bool


async def squad(pool: pooled.Pool, data: Path, n: int, seed: int = 0) -> list[Asked]:
    """Questions about articles kept aside, of as many paragraphs as there are."""
    rows = read(data / pruner_cases.SQUAD)
    part = pruner_cases.parts(dict(Counter(row["title"] for row in rows)))
    rng = random.Random(seed)
    turns: list[tuple[int, float, int, int]] = []
    for i, row in enumerate(rows):
        if part[row["title"]] == "test":
            order = rng.sample(range(len(row["qas"])), len(row["qas"]))
            # a first question of every paragraph, then a second one
            turns += [(turn, rng.random(), i, j) for turn, j in enumerate(order)]
    found = []
    for _, _, i, j in sorted(turns)[:n]:
        question, asked = pool.questions[i][j], rows[i]["qas"][j]
        retrieval = await pool.retrieve(question, K)
        starts = {answer["answer_start"] for answer in asked["answers"]}
        own = [one for one in retrieval.passages if one.passage.id == question.passage]
        gold = {
            one.passage.id: frozenset(
                k for k, s in enumerate(one.sentences) for a in starts if s.start <= a < s.end
            )
            for one in own
        }
        found.append(
            Asked(
                id=question.id,
                retrieval=retrieval,
                gold=gold,
                answers=question.answers,
                document=question.passage,
                aside=True,
            )
        )
    if len(found) < n:
        raise ValueError(f"there are {len(found)} questions about articles kept aside, not {n}")
    return found


def scifact(
    data: Path, work: Path, embedder: SentenceTransformerEmbedder, n: int
) -> tuple[list[Asked], Index]:
    """Claims with their abstract and those retrieved beside it, those kept aside from the pruner first."""
    key = hashlib.sha256((data / pruner_cases.CLAIMS).read_bytes()).hexdigest()[:12]
    where = work / f"scifact-{key}"
    where.mkdir(parents=True, exist_ok=True)
    known = where / "claims.json"
    if not known.exists():
        known.write_text(json.dumps(_claims(data, embedder)), encoding="utf-8")
    claims = json.loads(known.read_text(encoding="utf-8"))
    folder = where / hashlib.sha256(pooled.form().encode()).hexdigest()[:12]
    index = pooled.kept_index(claims["passages"], folder, embedder)
    view = index.view()
    found = []
    for claim in claims["claims"][:n]:
        query = make_query(claim["question"])
        encoded = embedder.encode_query(query.text)
        passages = view.fetch(claim["shown"])
        # in the order in which they would be shown, so that no place tells which is the gold one
        passages = tuple(sorted(passages, key=lambda one: -float(one.vector @ encoded.vector)))
        none = Ranking(method="dense", hits=())
        retrieval = Retrieval(
            query=query,
            passages=passages,
            query_vector=encoded.vector,
            dense=none,
            bm25_rerank=replace(none, method="bm25_rerank"),
            bm25=replace(none, method="bm25"),
            fused=replace(none, method="fused"),
            index_version=view.version,
            query_tokens=encoded.tokens,
            codec=index.meta.codec,
        )
        found.append(
            Asked(
                id=claim["id"],
                retrieval=retrieval,
                gold={name: frozenset(of) for name, of in claim["gold"].items()},
                answers=(),
                document=claim["shown"][0],
                aside=claim["part"] == "test",
            )
        )
    return found, index


def _claims(data: Path, embedder: SentenceTransformerEmbedder) -> dict[str, object]:
    """All claims with their passages, as JSON values."""
    texts = pruner_cases.Texts()
    cases = pruner_cases.scifact(data, pruner_cases.Abstracts.load(data), texts, embedder)
    order = {"test": 0, "dev": 1, "train": 2}
    rows = sorted(enumerate(cases), key=lambda row: order[row[1].part])
    claims: list[dict[str, Any]] = []
    for number, case in rows[:CLAIMS]:
        kept = [
            (f"p:{n}", sorted(gold))
            for n, gold, kind in zip(case.passages, case.gold, case.kinds, strict=True)
            if kind != "random"
        ]
        claims.append(
            {
                "id": f"scifact:{number}",
                "question": case.question,
                "part": case.part,
                "shown": [name for name, _ in kept],
                "gold": {name: gold for name, gold in kept if gold},
            }
        )
    shown = {name for claim in claims for name in claim["shown"]}
    passages = [
        {"id": p.id, "title": p.title, "text": p.text} for p in texts.passages if p.id in shown
    ]
    return {"claims": claims, "passages": passages}
