"""Chooses the router's settings by what a right answer costs simulated models, and checks the shipped ones.

Usage: ``python -m evals.policy [--data PATH] [--work PATH] [--questions N] [--k K] [--whole]``.

**Every figure is simulated.** No language model answers: simulated models (``docs/concepts/simulated-models.md``) do,
one for each profile, from gold labels. They are billed as gpt-4o-mini for the prompts that a real one would get.

The questions are SQuAD's about articles that the pruner was neither trained nor tuned on, over the pooled paragraphs of
these articles. One half of the paragraphs chooses, the other half is reported. The choice is the cheapest setting, by dollars for a
right answer averaged over profiles, whose answers are wrong no more often than those of direct RAG over all passages.
Every decision is the router's own, every prompt the strategies'. Retrievals and compressions are computed once, and
each dose once for a question and a profile; an escalation adds BriefContext's cost where a ladder was refused.

A passage that is shown in part counts as that part of the context's length; with ``--whole`` as a whole passage, so
that compressing spares a simulated model nothing.

Fails if the choice is cheaper than the shipped default on the other half, too, beyond chance (paired bootstrap, 95 %).
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from evals.pooled import FILE, SHADOW, Pool, Question, arguments, counter, open_pool, prices
from orchestrator.compressors import Compressors
from orchestrator.settings import DEFAULT_COMPRESSOR
from orchestrator.training.artefacts.gold import rows
from policies.affordable import PARTITIONED, WHOLE
from policies.preflight import SPOTLIGHT
from policies.specs import parse
from posology.testing.simulation import Gold, SimulatedModel, is_right, profiles
from posology.types import (
    Call,
    Completion,
    Decision,
    Dose,
    Query,
    Refusal,
    Retrieval,
    Situation,
    Task,
    Usage,
)
from strategies import make
from strategies.evidence import truncate_task

SHIPPED, DIRECT = "router", "direct"
#: settings of the router by what they set; every combination is tried
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "keep": ("keep=1", "keep=own", "keep=0.4", "keep=0.2"),
    "steps": ("start=1", "start=2", "start=4", "start=2,factor=4", "doubling=off"),
    "issue": ("issue=0", "issue=0.3", "issue=0.5", "preflight=off"),
    "escalation": ("escalate=on", "escalate=off"),
}
#: the shipped ones
DEFAULTS = {"keep": "keep=1", "steps": "start=4", "issue": "issue=0.5", "escalation": "escalate=on"}
#: what a budget that is short may lead to: shares of all passages, or fewer passages
STEPPED = (
    *(Dose(strategy="compressed", keep=share) for share in (0.4, 0.2, 0.1)),
    *(Dose(strategy=WHOLE, passages=passages) for passages in (4, 2, 1)),
)
DRAWS = 2_000
_MAX_TOKENS = 2_000
#: how far a mean may be above another by rounding
_EPSILON = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one question."""

    right: bool
    refused: bool
    #: dollars at the shadow price
    cost: float

    @property
    def wrong(self) -> bool:
        """Whether it was answered, and not rightly."""
        return not self.right and not self.refused


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Asked:
    """A question with what was retrieved for it, and the sentences that answer."""

    question: Question
    retrieval: Retrieval
    #: empty if the key passage was not retrieved
    gold: Gold


class Tally:
    """A :class:`~posology.seams.Complete` that adds up what passes through it."""

    def __init__(self, inner: SimulatedModel) -> None:
        self._inner = inner
        self.usage = Usage()

    async def __call__(self, call: Call) -> Completion:
        """Send one call."""
        completion = await self._inner(call)
        assert completion.usage is not None
        self.usage += completion.usage
        return completion


class Kept:
    """A compressor that compresses the same passages once."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._known: dict[tuple[Any, ...], Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, retrieval: Any, keep: float | None) -> Any:
        """Compress, or return what was compressed before."""
        key = (retrieval.query.text, keep, *(one.passage.id for one in retrieval.passages))
        if key not in self._known:
            self._known[key] = self._inner(retrieval, keep)
        return self._known[key]


class Bench:
    """Questions, the doses that policies give them, and what becomes of each dose.

    Args:
        asked: questions with their retrievals and gold.
        embedder: name of the index's embedder.
        partial: see :class:`~posology.testing.simulation.SimulatedModel`.
    """

    def __init__(self, asked: Sequence[Asked], embedder: str, *, partial: bool) -> None:
        self.asked = asked
        self._embedder = embedder
        self._gold = {one.retrieval.query.text: one.gold for one in asked}
        # many prompts are asked of every profile
        count = lru_cache(maxsize=None)(counter())
        self._models = {
            name: SimulatedModel(profile, self._gold_of, count, partial=partial)
            for name, profile in profiles().items()
        }
        kept = Kept(Compressors(DEFAULT_COMPRESSOR)(None))
        self._choose = lambda _: kept
        self._prices = prices()
        self._known: dict[tuple[str, str, Dose], Outcome] = {}

    @cached_property
    def records(self) -> list[Decision]:
        """The shipped policy's decision on each question, whose features every other policy decides from."""
        router = parse(SHIPPED).policy(embedder=self._embedder, compressor=DEFAULT_COMPRESSOR)
        return [
            router(Situation(query=one.retrieval.query, retrieval=one.retrieval))
            for one in self.asked
        ]

    def doses(self, policy: str) -> list[Dose]:
        """Return the dose that a policy gives each question."""
        router: Any = parse(policy).policy(embedder=self._embedder, compressor=DEFAULT_COMPRESSOR)
        return [router.replay(record).dose for record in self.records]

    async def run(self, doses: Sequence[Dose]) -> dict[str, list[Outcome]]:
        """By profile: what becomes of each question with its dose."""
        return {
            name: [await self._run(name, *pair) for pair in zip(self.asked, doses, strict=True)]
            for name in self._models
        }

    async def _run(self, profile: str, asked: Asked, dose: Dose) -> Outcome:
        if dose.escalate:
            first = await self._run(profile, asked, replace(dose, escalate=False))
            if not first.refused:
                return first
            last = await self._run(profile, asked, Dose(strategy=PARTITIONED))
            return replace(last, cost=first.cost + last.cost)
        key = profile, asked.question.id, dose
        if key not in self._known:
            self._known[key] = await self._ask(profile, asked, dose)
        return self._known[key]

    async def _ask(self, profile: str, asked: Asked, dose: Dose) -> Outcome:
        query = asked.retrieval.query
        task = Task(
            query=query,
            retrieval=asked.retrieval,
            model=SHADOW,
            max_tokens=_MAX_TOKENS,
            quotes="sentences",
        )
        tally = Tally(self._models[profile])
        outcome = await make(dose, choose=self._choose)(truncate_task(task, dose), tally)
        cost = self._prices.cost(SHADOW, tally.usage)
        assert cost is not None
        return Outcome(
            right=is_right(outcome, self._gold_of(query)),
            refused=isinstance(outcome, Refusal),
            cost=float(cost),
        )

    def _gold_of(self, query: Query) -> Gold:
        return self._gold[query.text]


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


def arms() -> Iterator[str]:
    """The shipped policy, and the router with every combination of settings."""
    yield SHIPPED
    for chosen in product(*SETTINGS.values()):
        yield f"{SHIPPED}:{','.join(chosen)}"


def alone() -> Iterator[str]:
    """The shipped policy with one other setting."""
    for kind, values in SETTINGS.items():
        for value in values:
            if value != DEFAULTS[kind]:
                yield f"{SHIPPED}:{','.join((DEFAULTS | {kind: value}).values())}"


def admitted(found: Arms) -> list[str]:
    """Policies that are wrong no more often than direct RAG."""
    most = found[DIRECT].errors + _EPSILON
    return [name for name in found if name.startswith(SHIPPED) and found[name].errors <= most]


def cheapest(found: Arms, names: Sequence[str]) -> str:
    """The policy with the cheapest right answer."""
    return min(names, key=lambda name: found[name].price)


def part(found: Arms, questions: np.ndarray) -> Arms:
    """All arms on some questions."""
    return {name: one.part(questions) for name, one in found.items()}


def halves(asked: Sequence[Asked], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the questions that choose, and of those that are reported; they share no paragraph."""
    documents = sorted({one.question.passage for one in asked})
    random.Random(seed).shuffle(documents)
    first = set(documents[: len(documents) // 2])
    chooses = np.array([one.question.passage in first for one in asked])
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


def marginals(found: Arms, allowed: Sequence[str]) -> Iterator[str]:
    """For each value of a setting: the cheapest admitted policy that has it."""
    for kind, values in SETTINGS.items():
        for value in values:
            with_it = [name for name in allowed if f",{value}," in f",{name.partition(':')[2]},"]
            if kind == "steps" and value == "start=2":
                with_it = [name for name in with_it if "factor" not in name]
            if not with_it:
                yield f"{kind}: {value}: no policy is admitted"
                continue
            best = cheapest(found, with_it)
            yield f"{kind}: {value}: {found[best].price:.3f}, wrong {found[best].errors:.3f} ({best})"


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


def recall(bench: Bench) -> Iterator[str]:
    """How many of the key passages beyond the third place are flagged, and how many lead to BriefContext at once."""
    buried, flagged, at_once = [], [], []
    rule = bench.doses(f"{SHIPPED}:preflight=published")
    for one, record in zip(bench.asked, bench.records, strict=True):
        shown = [p.passage.id for p in one.retrieval.passages]
        places = [shown.index(name) for name in one.gold]
        buried.append(not places or min(places) >= SPOTLIGHT)
        # a flag below the threshold makes one step of all passages
        flagged.append(record.dose.strategy == PARTITIONED or len(record.dose.rungs) == 1)
        at_once.append(record.dose.strategy == PARTITIONED)
    issue = np.array(buried)
    for name, found in (
        ("flag", flagged),
        ("action: BriefContext at once", at_once),
        ("published rule, flag and action", [d.strategy == PARTITIONED for d in rule]),
    ):
        given = np.array(found)
        yield f"{name}: {given.mean():.3f} of questions, recall {given[issue].mean():.3f} of {issue.sum()} issues"


async def measure(bench: Bench) -> dict[str, Measured]:
    """Every arm on every question, the doses for all among them."""
    found = {}
    started = time.perf_counter()
    everyone = {
        DIRECT: Dose(strategy=WHOLE),
        "compressed, own share": Dose(strategy="compressed"),
        PARTITIONED: Dose(strategy=PARTITIONED),
    } | {f"{d.strategy} {d.keep or d.passages}": d for d in STEPPED}
    for name, dose in everyone.items():
        found[name] = Measured.of(await bench.run([dose] * len(bench.asked)))
    for name in arms():
        found[name] = Measured.of(await bench.run(bench.doses(name)))
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    return found


def main(argv: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 where another setting is cheaper than the shipped one."""
    parser = arguments("evals.policy", __doc__, questions=240)
    parser.add_argument("--k", type=int, default=8, help="passages a question")
    parser.add_argument("--whole", action="store_true", help="count shown parts as whole passages")
    given = parser.parse_args(argv)
    if not (given.data / FILE).exists():
        sys.exit(f"{given.data} has no {FILE}. Pass --data with the folder of the data sets.")
    pool = open_pool(given.data, given.work, unseen=True)
    asked = anyio.run(ask, pool, given.data, given.questions, given.k)
    bench = Bench(asked, pool.index.meta.embedder, partial=not given.whole)
    found = anyio.run(measure, bench)
    chooses, aside = halves(asked, given.seed)
    return report(bench, part(found, chooses), part(found, aside))


async def ask(pool: Pool, data: Path, most: int, k: int) -> list[Asked]:
    """Return the first question of every paragraph, then the second ones, with k passages and what answers."""
    starts = {
        qa["id"]: [answer["answer_start"] for answer in qa["answers"]]
        for row in rows(data / FILE)
        for qa in row["qas"]
    }
    turns = zip_longest(*pool.questions)
    questions = [one for turn in turns for one in turn if one is not None][:most]
    found = []
    for question in questions:
        retrieval = await pool.retrieve(question, k)
        gold = {
            one.passage.id: [
                s for s in one.sentences if any(s.start <= at < s.end for at in starts[question.id])
            ]
            for one in retrieval.passages
            if one.passage.id == question.passage
        }
        found.append(Asked(question=question, retrieval=retrieval, gold=gold))
    return found


def report(bench: Bench, chooses: Arms, aside: Arms) -> int:
    """Print every table, and return the exit status."""
    allowed = admitted(chooses)
    chosen = cheapest(chooses, allowed)
    everyone = [name for name in aside if not name.startswith(SHIPPED)]
    print(f"SIMULATED models, prices of {SHADOW}. {len(bench.asked)} questions about articles that the pruner has not "
          f"seen\n\nchosen on {chooses[DIRECT].cost.shape[1]} questions: {chosen}\n")  # fmt: skip
    print(*marginals(chooses, allowed), "", sep="\n")
    print(f"on {aside[DIRECT].cost.shape[1]} other questions:\n")
    print(*table(aside, [*everyone, SHIPPED, *alone(), chosen]), "", sep="\n")
    own = f"{SHIPPED}:{','.join((DEFAULTS | {'keep': 'keep=own'}).values())}"
    print(*regrets(aside, [SHIPPED, own, chosen, DIRECT]), "", sep="\n")
    print(*recall(bench), sep="\n")
    ratio, low, high = dearer(aside[SHIPPED], aside[chosen])
    print(
        f"\na right answer of {SHIPPED} costs ×{ratio:.3f} [{low:.3f}, {high:.3f}] one of {chosen}"
    )
    if low > 1 and chosen in admitted(aside):
        print(f"{SHIPPED} is not the cheapest at its error rate", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
