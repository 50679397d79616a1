"""Costs of right answers by policy: which policy is the cheapest at direct RAG's error rate, and by how much.

All figures are means over profiles of simulated models, with a profile a row of every array.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evals.policy.bench import SHIPPED, Asked, Bench, Outcome
from orchestrator.evaluation.simulation import profiles
from policies.affordable import COMPRESSED, PARTITIONED
from policies.preflight import SPOTLIGHT
from posology.types import Dose

DIRECT = "direct"
ARMS = ("ladder", "one call", "compressed", "BriefContext")
DRAWS = 2_000
#: how far a mean may be above another by rounding
_EPSILON = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Measured:
    """What became of n questions with each of P profiles."""

    #: dollars, shape ``(P, n)``
    cost: np.ndarray
    #: 0 or 1, shape ``(P, n)``
    right: np.ndarray
    refused: np.ndarray
    wrong: np.ndarray

    @classmethod
    def of(cls, outcomes: Mapping[str, Sequence[Outcome]]) -> Measured:
        """From the outcomes of each profile."""

        def table(name: str) -> np.ndarray:
            return np.array([[getattr(o, name) for o in of] for of in outcomes.values()], float)

        return cls(**{name: table(name) for name in ("cost", "right", "refused", "wrong")})

    def part(self, questions: np.ndarray) -> Measured:
        """Of some questions."""
        return Measured(**{name: getattr(self, name)[:, questions] for name in Measured.__slots__})

    @property
    def each(self) -> np.ndarray:
        """Dollars for 1,000 right answers of each profile."""
        return np.asarray(1_000 * self.cost.sum(axis=1) / self.right.sum(axis=1))

    @property
    def price(self) -> float:
        """Dollars for 1,000 right answers, mean over profiles."""
        return float(self.each.mean())

    @property
    def errors(self) -> float:
        """Share of wrong answers, mean over profiles."""
        return float(self.wrong.mean())


Arms = Mapping[str, Measured]


def admitted(found: Arms) -> list[str]:
    """Policies that are wrong no more often than direct RAG."""
    most = found[DIRECT].errors + _EPSILON
    return [name for name in found if name.startswith(SHIPPED) and found[name].errors <= most]


def cheapest(found: Arms, names: Sequence[str]) -> str:
    """The policy with the cheapest right answer."""
    return min(names, key=lambda name: found[name].price)


def better(found: Arms, than: str) -> list[str]:
    """Policies with cheaper right answers than another, right at least as often, and wrong no more often."""
    other = found[than]
    return [
        name
        for name, one in found.items()
        if one.price < other.price - _EPSILON
        and one.right.mean() >= other.right.mean() - _EPSILON
        and one.errors <= other.errors + _EPSILON
    ]


def part(found: Arms, questions: np.ndarray) -> Arms:
    """All arms on some questions."""
    return {name: one.part(questions) for name, one in found.items()}


def halves(asked: Sequence[Asked], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the questions that choose, and of those that are reported; they share no document."""
    groups: list[frozenset[str]] = []
    for one in asked:
        apart = [group for group in groups if not group & one.documents]
        groups = [*apart, one.documents.union(*(set(groups) - set(apart)))]
    groups.sort(key=min)
    random.Random(seed).shuffle(groups)
    first = frozenset().union(*groups[::2])
    chooses = np.array([one.documents <= first for one in asked])
    return np.flatnonzero(chooses), np.flatnonzero(~chooses)


def dearer(one: Measured, other: Measured) -> tuple[float, float, float]:
    """Cost of a right answer as a multiple of another arm's, with its 95 % interval over questions."""
    n = one.cost.shape[1]
    drawn = np.random.default_rng(0).integers(0, n, (DRAWS, n))
    ratios = [one.part(rows).price / other.part(rows).price for rows in drawn]
    low, high = np.percentile(ratios, [2.5, 97.5])
    return one.price / other.price, float(low), float(high)


def table(found: Arms, names: Sequence[str]) -> Iterator[str]:
    """A row an arm: shares, and the cost of a right answer, means over profiles."""
    yield "| simulated, mean over profiles | right | refused | wrong | $ for 1,000 right answers |"
    yield "| --- " * 5 + "|"
    for name in dict.fromkeys(names):
        one = found[name]
        shares = " | ".join(
            f"{getattr(one, of).mean():.3f}" for of in ("right", "refused", "wrong")
        )
        yield f"| {name} | {shares} | {one.price:.3f} |"


def regrets(found: Arms, names: Sequence[str]) -> Iterator[str]:
    """A row a profile: what a right answer costs above the cheapest policy that is wrong no more often than direct RAG.

    A star marks a policy that is wrong more often.
    """
    yield f"| simulated profile | cheapest | {' | '.join(f'regret of {name}' for name in names)} |"
    yield "| --- " * (2 + len(names)) + "|"
    for row, profile in enumerate(profiles()):
        most = found[DIRECT].wrong[row].mean() + _EPSILON
        allowed = [name for name in found if found[name].wrong[row].mean() <= most]
        best = min(allowed, key=lambda name: found[name].each[row])
        least = found[best].each[row]
        shares = " | ".join(
            f"{found[name].each[row] / least - 1:+.0%}{'' if name in allowed else ' *'}"
            for name in names
        )
        yield f"| {profile} | {best}: {least:.3f} | {shares} |"


def recall(bench: Bench, of: np.ndarray) -> Iterator[str]:
    """How many of the key passages beyond the third place are flagged, and how many lead to BriefContext at once."""
    issue, absent = [], []
    for number in of:
        one = bench.asked[number]
        shown = [p.passage.id for p in one.retrieval.passages]
        places = [shown.index(name) for name in one.gold]
        issue.append(not places or min(places) >= SPOTLIGHT)
        absent.append(not places)
    buried, mendable = np.array(issue), np.array(issue) & ~np.array(absent)
    yield "| BriefContext at once | of questions | of issues | of mendable issues |"
    yield "| --- | --- | --- | --- |"
    for setting in ("issue=0", "issue=0.3", "issue=0.5", "preflight=published"):
        doses = bench.doses(f"{SHIPPED}:{setting}")
        given = np.array([doses[number].strategy == PARTITIONED for number in of])
        yield (
            f"| {setting} | {given.mean():.3f} | {share(given[buried])} | {share(given[mendable])} |"
        )


def arm_of(dose: Dose) -> str:
    """Return the name in :data:`ARMS` of a dose."""
    if dose.strategy == PARTITIONED:
        return "BriefContext"
    if dose.strategy == COMPRESSED:
        return "compressed"
    return "ladder" if len(dose.rungs) > 1 else "one call"


def census(bench: Bench, of: np.ndarray) -> str:
    """How many questions each arm of the shipped policy gets."""
    doses = bench.doses(SHIPPED)
    counts = Counter(arm_of(doses[number]) for number in of)
    return ", ".join(f"{arm} {counts[arm]}" for arm in ARMS)


def share(given: np.ndarray) -> str:
    """A share and its number of cases."""
    return f"{given.mean():.3f} of {len(given)}" if len(given) else "none"
