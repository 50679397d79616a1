"""Conflicts that the offline reader finds, and the sides that it puts passages on, for :mod:`evals.reader`.

Usage: ``python -m evals.reader.conflicts [--data PATH] [--weights PATH]`` fits the limits of
:mod:`posology.llm.offline.contrast` on dev documents, and prints them. The conflicts that they find are measured by
``python -m evals.reader --only conflicts`` on the other documents.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evals.conflicts import cases as conflict_cases
from evals.reader.cases import excerpt
from evals.reader.methods import Method, crossed
from orchestrator.settings.values import READ
from posology.index.embedders import load
from posology.llm.offline.choice import Scores
from posology.llm.offline.contrast import LIMITS, Limits, contrast
from posology.reading.crossencoder import FILE, MODELS, CrossEncoder
from posology.reading.judge import Judge
from posology.seams import SupportJudge
from posology.types import Call, Excerpt, PromptId, Query, Stage
from training.gold import DATA, rows
from training.pruner_cases import alone, part_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: least share of passages on their right sides, of dev documents
RIGHT = 0.80
#: conflicts to be missed for one that is made up
CAUTION = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """Passages by what they say to a question: passages of different groups contradict each other."""

    question: str
    excerpts: tuple[Excerpt, ...]
    #: by passage; a passage that says nothing has none
    groups: Mapping[str, str]

    @property
    def conflict(self) -> bool:
        """Whether passages contradict each other."""
        return len(set(self.groups.values())) > 1

    @property
    def agreeing(self) -> Sides:
        """The same without the passages that do not say what most of them say."""
        most = Counter(self.groups.values()).most_common(1)
        own = {name: group for name, group in self.groups.items() if group == most[0][0]}
        left = [e for e in self.excerpts if e.passage.id in own or e.passage.id not in self.groups]
        return replace(self, excerpts=tuple(left), groups=own)


def healthver(folder: Path, part: str) -> list[Sides]:
    """Return HealthVer's claims of a part, without those whose evidence is another part's, too: evidence for a claim, and against it."""
    cases = alone(
        conflict_cases.healthver(folder),
        part,
        named=lambda case: f"healthver:{case.question}",
        texts=lambda case: [passage.text for passage in case.passages],
    )
    made = []
    for case in cases:
        (sides,) = case.claims.values()
        groups = dict.fromkeys(sides.supporting, "for")
        groups |= dict.fromkeys(sides.opposing, "against")
        made.append(_made(case, groups))
    return made


def ramdocs(folder: Path, *, dev: bool) -> list[Sides]:
    """Return RAMDocs' questions: documents that give a right answer, and those that give a wrong one.

    Nothing was trained on it, so that all but the dev part is measured on.
    """
    made = []
    for case in conflict_cases.ramdocs(folder):
        groups: dict[str, str] = {}
        for claim, sides in case.claims.items():
            wrong = claim != "There is an answer."
            groups |= dict.fromkeys(sides.supporting, claim if wrong else "right")
            groups |= dict.fromkeys(sides.opposing, "right")
        made.append(_made(case, groups))
    return [one for one in made if _dev(one) == dev]


def answers(folder: Path, *, dev: bool) -> list[Sides]:
    """Return the same questions with documents by their answers.

    Different right answers, about different things of one name, are different sides, too.
    """
    found = zip(conflict_cases.ramdocs(folder), rows(folder / conflict_cases.FILES[1]), strict=True)
    made = []
    for case, row in found:
        documents = zip(case.passages, row["documents"], strict=True)
        groups = {p.id: str(d["answer"]) for p, d in documents if d["type"] != "noise"}
        made.append(_made(case, groups))
    return [one for one in made if _dev(one) == dev]


def _dev(case: Sides) -> bool:
    return part_of(f"ramdocs:{case.question}") == "dev"


def _made(case: conflict_cases.Case, groups: dict[str, str]) -> Sides:
    excerpts = tuple(excerpt(p.text, "", p.id) for p in case.passages)
    return Sides(question=case.question, excerpts=excerpts, groups=groups)


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What became of a question's conflict."""

    #: whether one was found; ``None``: there is none
    found: float | None = None
    #: whether none was found; ``None``: there is one
    none: float | None = None
    #: share of the passages that are on their right sides; ``None``: none was found, or there is none
    right: float | None = None


def scores_of(case: Sides, method: Method) -> Scores:
    """Return the scores of each passage's best sentence, which a partition would hand on, and the answers."""
    scores = method.read(case.question, case.excerpts)
    best = list({one.excerpt: one for one in reversed(scores.read)}.values())
    best.sort(key=lambda one: -one.score)
    return replace(scores, read=best)


def found(case: Sides, scores: Scores, method: Method, limits: Limits = LIMITS) -> Found:
    """Return what the reader makes of a question."""
    call = Call(
        stage=Stage.REDUCE,
        model="offline:extractive",
        query=Query(text=case.question),
        excerpts=case.excerpts,
        messages=(),
        prompt=PromptId(name="reduce", digest="0" * 16),
        max_tokens=1_000,
    )
    pair = contrast(call, scores, method.judge, limits)
    if not case.conflict:
        return Found(none=float(pair is None))
    if pair is None:
        return Found(found=0.0)
    ids = [
        [case.excerpts[one.excerpt].passage.id for one in side]
        for side in (pair.speaking_for, pair.speaking_against)
    ]
    own = case.groups.get(ids[0][0])
    if own in ("for", "against"):
        own = "for"
    right = [case.groups.get(name) == own and own is not None for name in ids[0]]
    right += [case.groups.get(name) not in (None, own) for name in ids[1]]
    return Found(found=1.0, right=sum(right) / len(right))


class _Kept:
    """A judge that judges a pair once."""

    def __init__(self, model: SupportJudge) -> None:
        self.name = model.name
        self._model = model
        self._kept: dict[tuple[str, str], NDArray[np.float32]] = {}

    def judge(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._kept]
        self._kept |= zip(new, self._model.judge(new), strict=True)
        return np.array([self._kept[pair] for pair in pairs]).reshape(-1, 3)


def fit(cases: Sequence[Sides], method: Method, choices: Iterable[Limits]) -> Limits | None:
    """Return the limits that find the most conflicts and make up the fewest; ``None``: no sides are right enough.

    Each conflict counts a second time without the passages of its other sides.
    """
    read = [(case, scores_of(case, method)) for case in cases]
    read += [(case.agreeing, scores_of(case.agreeing, method)) for case in cases if case.conflict]
    best: tuple[float, Limits] | None = None
    for limits in choices:
        results = [found(case, scores, method, limits) for case, scores in read]
        share, none, right = (
            np.mean([v for v in values if v is not None] or [0.0])
            for values in zip(*((r.found, r.none, r.right) for r in results), strict=True)
        )
        value = float(share - CAUTION * (1 - none))
        if right >= RIGHT and (best is None or value > best[0]):
            best = value, limits
    return best and best[1]


def _grid(first: float, last: float, step: float) -> list[float]:
    return [round(float(at), 2) for at in np.arange(first, last + step / 2, step)]


def main(argv: list[str] | None = None) -> None:
    """Print the limits that dev documents lead to."""
    parser = argparse.ArgumentParser(prog="evals.reader.conflicts", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--weights", type=Path, default=MODELS / FILE)
    given = parser.parse_args(argv)
    model = CrossEncoder(given.weights.read_bytes())
    method = crossed(model, READ, load(), _Kept(Judge.packaged()))
    # the highest first: of equals, the most cautious is taken
    claims = [
        Limits(sided=sided, supports=supports, contradicts=contradicts)
        for sided, supports, contradicts in product(
            (0.6, 0.5, 0.4), _grid(0.75, 0.51, -0.02), _grid(0.25, 0.6, 0.05)
        )
        if contradicts < supports
    ]
    spans = [Limits(answers=at) for at in _grid(0.9, 0.45, -0.05)]
    print("sides of a claim, HealthVer:", fit(healthver(given.data, "dev"), method, claims))
    print("sides by answers, RAMDocs:", fit(answers(given.data, dev=True), method, spans))


if __name__ == "__main__":
    main()
