"""Questions whose sources contradict each other: HealthVer's claims and RAMDocs' questions, with their gold labels.

HealthVer: a claim with evidence that supports it, refutes it, or is neutral. RAMDocs: a question with documents that
give a right answer, a wrong one or none; each wrong answer is a claim that its documents support and those with a
right answer oppose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from posology.types import Form, Passage
from training.gold import rows

FILES = ("healthver_dev.jsonl.gz", "ramdocs_part1.jsonl.gz")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """The passages on each side of a claim."""

    supporting: frozenset[str]
    opposing: frozenset[str]

    def of(self, claim: str) -> frozenset[tuple[str, str, str]]:
        """Claim, passage and side, one a source."""
        return frozenset(
            (claim, passage, side)
            for side, passages in (("supporting", self.supporting), ("opposing", self.opposing))
            for passage in passages
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A question with its passages, and what each says of each claim."""

    question: str
    passages: tuple[Passage, ...]
    claims: Mapping[str, Sides]
    #: right answers: of a claim the verdict of most of its evidence, none if that is undecided
    right: tuple[str, ...]
    #: wrong answers that a passage gives
    wrong: tuple[str, ...]
    form: Form = Form.FREE

    @property
    def relevant(self) -> frozenset[str]:
        """The passages that take a side on any claim."""
        return frozenset().union(*(s.supporting | s.opposing for s in self.claims.values()))

    @property
    def gold(self) -> frozenset[tuple[str, str, str]]:
        """What is to be reported: the sources of every claim that has both sides."""
        return frozenset().union(
            *(s.of(claim) for claim, s in self.claims.items() if s.supporting and s.opposing)
        )


def healthver(data: Path) -> list[Case]:
    """One case a claim."""
    cases = []
    for i, row in enumerate(rows(data / FILES[0])):
        passages = _passages(f"hv:{i}", [e["text"] for e in row["evidence"]])
        by_label = {
            label: frozenset(
                p.id for p, e in zip(passages, row["evidence"], strict=True) if e["label"] == label
            )
            for label in ("Supports", "Refutes")
        }
        sides = Sides(supporting=by_label["Supports"], opposing=by_label["Refutes"])
        claim = " ".join(row["claim"].split())
        votes = len(sides.supporting) - len(sides.opposing)
        yes, no = ("yes", "no") if votes > 0 else ("no", "yes")
        cases.append(
            Case(
                question=row["claim"],
                passages=passages,
                claims={claim: sides},
                right=(yes,) if votes else (),
                wrong=(no,) if votes else (),
                form=Form.YES_NO,
            )
        )
    return cases


def ramdocs(data: Path) -> list[Case]:
    """One case a question; one claim a wrong answer, or where there is none, that there is an answer."""
    cases = []
    for i, row in enumerate(rows(data / FILES[1])):
        passages = _passages(f"rd:{i}", [d["text"] for d in row["documents"]])
        documents = list(zip(passages, row["documents"], strict=True))
        right = frozenset(p.id for p, d in documents if d["type"] == "correct")
        wrong = {
            answer: frozenset(
                p.id for p, d in documents if d["type"] == "misinfo" and d["answer"] == answer
            )
            for answer in row["wrong_answers"]
        }
        claims = {
            f"The answer is {' '.join(answer.split())}.": Sides(supporting=ids, opposing=right)
            for answer, ids in wrong.items()
        } or {"There is an answer.": Sides(supporting=right, opposing=frozenset())}
        cases.append(
            Case(
                question=row["question"],
                passages=passages,
                claims=claims,
                right=tuple(row["gold_answers"]),
                wrong=tuple(row["wrong_answers"]),
            )
        )
    return cases


def _passages(prefix: str, texts: Sequence[str]) -> tuple[Passage, ...]:
    return tuple(Passage(id=f"{prefix}:{i}", text=text) for i, text in enumerate(texts))
