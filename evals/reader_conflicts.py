"""Conflicts that the offline reader finds, and the sides that it puts passages on, for :mod:`evals.reader`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evals import conflict_cases
from evals.reader_cases import excerpt
from evals.reader_methods import Method
from orchestrator.training.artefacts.pruner_cases import part_of
from posology.llm.offline.contrast import contrast
from posology.types import Call, Excerpt, PromptId, Query, Stage


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """Passages by what they say to a question: passages of different groups contradict each other."""

    question: str
    excerpts: tuple[Excerpt, ...]
    #: by passage; a passage that says nothing has none
    groups: dict[str, str]

    @property
    def conflict(self) -> bool:
        """Whether passages contradict each other."""
        return len(set(self.groups.values())) > 1


def healthver(folder: Path, part: str) -> list[Sides]:
    """Return HealthVer's claims of a part: evidence for a claim, and against it."""
    cases = (
        c for c in conflict_cases.healthver(folder) if part_of(f"healthver:{c.question}") == part
    )
    made = []
    for case in cases:
        (sides,) = case.claims.values()
        groups = dict.fromkeys(sides.supporting, "for")
        groups |= dict.fromkeys(sides.opposing, "against")
        made.append(_made(case, groups))
    return made


def ramdocs(folder: Path) -> list[Sides]:
    """Return RAMDocs' questions: documents by their answers. Nothing was trained on it."""
    cases = conflict_cases.ramdocs(folder)
    made = []
    for case in cases:
        groups: dict[str, str] = {}
        for claim, sides in case.claims.items():
            wrong = claim != "There is an answer."
            groups |= dict.fromkeys(sides.supporting, claim if wrong else "right")
            groups |= dict.fromkeys(sides.opposing, "right")
        made.append(_made(case, groups))
    return made


def _made(case: conflict_cases.Case, groups: dict[str, str]) -> Sides:
    excerpts = tuple(excerpt(p.text, "", p.id) for p in case.passages)
    return Sides(question=case.question, excerpts=excerpts, groups=groups)


def found(case: Sides, method: Method) -> tuple[float | None, float | None, float | None]:
    """Return whether a conflict was found, whether none was where there is none, and the share of right sides."""
    scores = method.read(case.question, case.excerpts)
    # a partition hands on the best of each passage
    best = list({one.excerpt: one for one in reversed(scores.read)}.values())
    best.sort(key=lambda one: -one.score)
    call = Call(
        stage=Stage.REDUCE,
        model="offline:extractive",
        query=Query(text=case.question),
        excerpts=case.excerpts,
        messages=(),
        prompt=PromptId(name="reduce", digest="0" * 16),
        max_tokens=1_000,
    )
    pair = contrast(call, best, method.judge)
    if not case.conflict:
        return None, float(pair is None), None
    if pair is None:
        return 0.0, None, None
    ids = [
        [case.excerpts[one.excerpt].passage.id for one in side]
        for side in (pair.speaking_for, pair.speaking_against)
    ]
    own = case.groups.get(ids[0][0])
    if own in ("for", "against"):
        own = "for"
    right = [case.groups.get(name) == own and own is not None for name in ids[0]]
    right += [case.groups.get(name) not in (None, own) for name in ids[1]]
    return 1.0, None, sum(right) / len(right)
