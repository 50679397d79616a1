"""The pruner's passage scores as a re-ranker, over the whole pool: beside dense, BM25 and both fused.

Usage: ``python -m evals.pruner_rerank [--data PATH] [--work DIR] [--questions N] [--known]``.

Of a seeded sample of SciFact's claims and PubMedQA's questions, the 20 best of the fused ranking are re-ranked
(the product re-ranks 50). PubMedQA's questions were never trained on: the head that ships ranks for them. For
SciFact's claims it is trained anew five times, by the recipe of :mod:`evals.pruner_train` but one network
instead of three, without the claims of a fifth and without any passage that is ranked for them. A fifth is of
whole documents: claims with a document in common are in one.

The passages are encoded once, as ingest encodes them, and kept in the folder of work: half an hour on two cores
for all of them. ``--known`` takes the questions whose passages are there.

Differences are to the fused ranking, on the same questions, with 95 % bootstrap intervals.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from evals.pooled import WORK, interval, shown
from evals.preflight_cases import FILES
from evals.pruner_candidates import CANDIDATES, Asked, asked, passages
from evals.pruner_data import Texts
from evals.pruner_encoded import Kept, encode, read
from evals.pruner_head import fit_head, packed
from evals.pruner_score import Recorded, observed
from evals.pruner_train import EPOCHS, coded, open_corpora
from posology.index.embedders import load
from posology.index.schema import FORMAT, SPLITTER
from posology.index.search.retriever import RRF_K
from posology.query import make_query
from posology.text.sentences import split
from posology.types import Ranking, Retrieval, Retrieved
from strategies.compression.late.codec import LateCodec
from strategies.compression.late.head import Head
from strategies.compression.late.pruner import Pruner

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDS = 5
MRR_AT = 10
#: title and text: what tells passages of training cases and of the pool apart
Key: TypeAlias = tuple[str, str]
#: questions with ids by method, best first
Ranked: TypeAlias = "Sequence[tuple[Asked, dict[str, list[str]]]]"
_NONE = Ranking(method="dense", hits=())


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Training:
    """What heads are trained on."""

    records: list[Recorded]
    #: passages of the cases of the literature, by number
    keys: list[Key]


def training(data: Path, work: Path, codec: LateCodec, head: Head) -> Training:
    """The cases with the features that the shipped head sees; made once, half an hour without vectors."""
    file = work / f"records-{head.version}.pkl"
    if not file.exists():
        corpora = open_corpora(data, work, load(None))
        made: list[Recorded] = []
        for corpus in corpora:
            codes = coded(corpus.bank, codec)
            made += [observed(case, corpus, codes, codec, head.weights) for case in corpus.cases]
        file.write_bytes(pickle.dumps((made, _keys(corpora[1].texts))))
    records, keys = pickle.loads(file.read_bytes())  # noqa: S301 - written above
    return Training(records=records, keys=keys)


def _keys(texts: Texts) -> list[Key]:
    return [(p.title or "", p.text) for p in texts.passages]


def folds(questions: Sequence[Asked]) -> dict[str, int]:
    """Claim → its fifth. Claims that share a document, even through others, are in one."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for question in questions:
        first, *others = sorted(question.gold)
        for other in others:
            root[find(other)] = find(first)
    return {
        q.text: int(hashlib.sha256(find(min(q.gold)).encode()).hexdigest()[:8], 16) % FOLDS
        for q in questions
    }


def without(given: Training, claims: set[str], aside: set[Key]) -> list[Recorded]:
    """The training cases without some claims, and without some passages, gold ones with their cases."""
    found = []
    for record in given.records:
        case = record.case
        if case.origin.startswith("squad"):
            if case.part == "train":
                found.append(record)
            continue
        # of the claims all parts: those aside are the fold's
        if case.question in claims or (case.origin != "scifact" and case.part != "train"):
            continue
        places = [i for i, p in enumerate(case.passages) if given.keys[p] not in aside]
        if not any(case.kinds[i] == "gold" for i in places):
            continue
        features, sizes, rows = record.of(places)
        found.append(
            Recorded(
                case=replace(
                    case,
                    passages=tuple(case.passages[i] for i in places),
                    gold=tuple(case.gold[i] for i in places),
                    kinds=tuple(case.kinds[i] for i in places),
                ),
                features=features,
                sizes=sizes,
                gold=record.gold[rows],
                chars=record.chars[rows],
            )
        )
    return found


def heads(
    questions: Sequence[Asked],
    found: Mapping[str, Retrieved],
    given: argparse.Namespace,
    codec: LateCodec,
    shipped: Head,
) -> Iterator[tuple[list[Asked], Head]]:
    """The claims of every fifth, with a head that has seen neither them nor what is ranked for them."""
    cases = training(given.data, given.work, codec, shipped)
    claims = [q for q in questions if q.origin == "SciFact"]
    where = folds(claims)
    for fold in range(FOLDS):
        own = [q for q in claims if where[q.text] == fold]
        names = {name for q in own for name in (*q.candidates, *q.gold) if name in found}
        aside = {(found[n].passage.title or "", found[n].passage.text) for n in names}
        records = without(cases, {q.text for q in own}, aside)
        of_claims = sum(r.case.origin == "scifact" for r in records)
        print(f"fold {fold}: {len(own)} claims, trained on {of_claims} others", flush=True)
        yield own, _head(records, given, codec, shipped)


def _head(
    records: Sequence[Recorded], given: argparse.Namespace, codec: LateCodec, shipped: Head
) -> Head:
    """One that was trained on these cases, or that was kept."""
    made = [shipped.version, given.networks, given.epochs]
    made += [(r.case.question, len(r.features)) for r in records]
    file = given.work / f"head-{hashlib.sha256(repr(made).encode()).hexdigest()[:16]}.npz"
    if not file.exists():
        networks = [
            fit_head(records, seed=seed, epochs=given.epochs) for seed in range(given.networks)
        ]
        file.write_bytes(packed(networks, codec, shipped.weights))
    return Head.read(file.read_bytes())


def scores(
    question: Asked,
    found: Mapping[str, Retrieved],
    kept: Mapping[str, Kept],
    pruner: Pruner,
    codec: LateCodec,
) -> NDArray[np.float32]:
    """The pruner's scores of the candidates, shape ``(len(question.candidates),)``."""
    ranked = []
    for name in question.candidates:
        one = found[name]
        ranked.append(
            replace(
                one,
                sentences=split(one.passage.text),
                sentence_vectors=kept[name].sentence_vectors,
                tokens=kept[name].tokens,
            )
        )
    retrieval = Retrieval(
        query=make_query(question.text),
        passages=tuple(ranked),
        query_vector=question.encoded.vector,
        dense=_NONE,
        bm25_rerank=_NONE,
        bm25=_NONE,
        fused=_NONE,
        index_version="none",
        query_tokens=question.encoded.tokens,
        codec=codec.name,
    )
    return pruner.scores(retrieval)[1]


def orders(question: Asked, by_pruner: NDArray[np.float32]) -> dict[str, list[str]]:
    """Ids by method, best first."""
    names = list(question.candidates)
    order = np.argsort(-by_pruner, kind="stable")
    place = np.empty(len(names))
    place[order] = np.arange(1, len(names) + 1)
    by_place = 1 / (RRF_K + np.arange(1, len(names) + 1)) + 1 / (RRF_K + place)
    fused = np.array(question.scores[: len(names)])
    both = _standard(by_pruner) + _standard(fused)
    return {
        "dense": list(question.dense),
        "bm25": list(question.bm25),
        "fused": names,
        "pruner": [names[i] for i in order],
        "fused + pruner, by rank": [names[i] for i in np.argsort(-by_place, kind="stable")],
        "fused + pruner, by score": [names[i] for i in np.argsort(-both, kind="stable")],
    }


def _standard(values: NDArray[np.floating]) -> NDArray[np.floating]:
    found: NDArray[np.floating] = (values - values.mean()) / (values.std() + 1e-9)
    return found


def reciprocal(order: Sequence[str], gold: frozenset[str]) -> float:
    """One over the place of the first that is gold, 0 beyond :data:`MRR_AT`."""
    best = (1 / n for n, name in enumerate(order[:MRR_AT], start=1) if name in gold)
    return next(best, 0.0)


def table(title: str, ranked: Ranked) -> None:
    """Print a line for each method."""
    there = np.mean([bool(q.gold.intersection(q.candidates)) for q, _ in ranked])
    print(f"{title}, {len(ranked)} questions; a gold one is among {CANDIDATES} for {there:.3f}")
    fused = np.array([reciprocal(of["fused"], q.gold) for q, of in ranked])
    for name in ranked[0][1]:
        mrr = np.array([reciprocal(of[name], q.gold) for q, of in ranked])
        hit = mrr == 1
        line = f"  {name:26s} MRR@{MRR_AT} {shown(mrr)}  hit@1 {shown(hit)}"
        if name != "fused":
            low, high = interval(mrr - fused)
            line += f"  {np.mean(mrr - fused):+.3f} [{low:+.3f}, {high:+.3f}]"
        print(line, flush=True)


def main() -> int:
    """Encode, train, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="evals.pruner_rerank",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK / "pruner")
    parser.add_argument("--index", type=Path, default=WORK / f"pool-vectors-{FORMAT}-{SPLITTER}")
    parser.add_argument("--questions", type=int, default=600, help="of both sets, at most")
    parser.add_argument("--known", action="store_true", help="encode nothing")
    parser.add_argument("--networks", type=int, default=1, help="a head of a fold (ships: 3)")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    given = parser.parse_args()
    if missing := [name for name in FILES if not (given.data / name).exists()]:
        print(f"not here: {', '.join(missing)}", file=sys.stderr)
        return 1
    codec, shipped = LateCodec.packaged(), Head.packaged()
    given.work.mkdir(parents=True, exist_ok=True)
    questions = asked(given.data, given.index, load(None))[: given.questions]
    found = passages(given.index, questions)
    trained = list(heads(questions, found, given, codec, shipped))
    folder = given.work / f"pool-{codec.name}"
    everything = [one.passage for one in found.values()]
    kept = read(folder) if given.known else encode(everything, folder, processes=2)
    there = {q.text for q in questions if all(name in kept for name in q.candidates)}
    print(f"codec {codec.name}, head {shipped.version}, {len(there)} questions")

    def ranked(own: Sequence[Asked], head: Head) -> Ranked:
        pruner = Pruner(codec=codec, head=head)
        return [
            (q, orders(q, scores(q, found, kept, pruner, codec))) for q in own if q.text in there
        ]

    table("PubMedQA", ranked([q for q in questions if q.origin != "SciFact"], shipped))
    table(f"SciFact, {FOLDS}-fold", [one for own, head in trained for one in ranked(own, head)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
