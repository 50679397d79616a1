"""Measures the cost of a right answer by the router and by one dose for all questions.

Usage: ``python -m evals.policy.router [--data PATH] [--questions N] [--part router|test] [--table] [--qtable FILE] [--least SCORE]``.

Questions of SQuAD about articles that the pruner was neither trained nor tuned on (their number is printed) are asked
of all of its pooled paragraphs: 16 are retrieved, and the offline reader answers,
billed as if it were gpt-4o-mini. Every answer comes from the real pipeline, policy and account; replies to equal
calls are computed once and charged each time. An answer is right when it holds the gold answer's stemmed words;
what is not right is a refusal or wrong. Intervals are 95 % bootstrap ones; ratios are paired, question by question.

The offline reader scores every passage by itself, so that nothing is ever lost in the middle for it: what
BriefContext is for cannot show here, only what it costs. It refuses where its best sentence scores below 0.60;
``--least`` makes it refuse below a higher score, as a reader does that is less easily satisfied.

No Q-table ships, so the router is measured without one. With ``--table`` it has one, which learns here from 400
questions of the other half of the paragraphs; that takes some ten minutes once and is kept
under the folder of work. ``--part test`` asks other questions of the same paragraphs. The settings of the router's
preset are chosen by ``evals.policy``, on simulated models.

Fails if one dose for all that is wrong no more often gives a cheaper right answer than the router as shipped, or if another
setting of the router does, beyond chance (paired bootstrap, 95 %), and is right as often.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import anyio
import numpy as np

from evals.policy.exploration import explore
from evals.pooled import (
    FILE,
    SHADOW,
    CachedEncoder,
    Pool,
    Question,
    arguments,
    counter,
    holds,
    offline_reader,
    open_pool,
    shown,
)
from orchestrator.question import qtables
from orchestrator.question.decider import Decider
from orchestrator.question.pipeline import Pipeline, Report
from orchestrator.question.request import Request
from orchestrator.training.qtable.learner import Recipe, learn
from policies.affordable import describe
from policies.qtable import QTable
from policies.specs import PREFLIGHT
from posology.budget.bounds.calls import CallBound
from posology.budget.prices.book import PriceBook
from posology.budget.prices.file import PriceFile
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.llm.memo import call_key
from posology.llm.offline.choice import THRESHOLD
from posology.llm.offline.reader import NAME, ExtractiveReader
from posology.llm.offline.scores import SentenceScorer
from posology.llm.stack import build
from posology.seams import Complete, Journal
from posology.types import Answer, Call, Completion, Stage
from prompts.answer import AnswerReply
from training.gold import need

K = 16
#: questions that the Q-table learns from, and passages of each: the product's default
TRAINED, TRAINED_K = 400, 8
DRAWS = 2_000
ROUTER = "router"


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """One way to answer all questions."""

    name: str
    #: of :mod:`policies.specs`; ``None``: the strategy is forced
    policy: str | None = None
    strategy: str | None = None
    keep: float | None = None
    #: whether the router is to be cheaper
    rival: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one question."""

    right: bool
    refused: bool
    calls: int
    #: tokens
    input: int
    output: int
    #: dollars at the shadow price
    cost: float
    #: which dose was decided, and how far it went
    dose: str
    branch: str

    @property
    def wrong(self) -> bool:
        """Whether it was answered, and not rightly."""
        return not self.right and not self.refused


class Reader:
    """The offline reader, which is asked once for what every arm is to be told.

    Args:
        encoder: encodes a text once.
        least: the score of the best sentence below which an answer is refused.
    """

    def __init__(self, encoder: CachedEncoder, least: float) -> None:
        self._count = counter()
        self._inner = ExtractiveReader(encoder, self._count)
        self._scorer = SentenceScorer(encoder)
        self._least = least
        self._known: dict[str, Completion] = {}

    async def __call__(self, call: Call, *, attempt_id: str | None = None) -> Completion:  # noqa: ARG002
        """Reply to one call."""
        key = call_key(call)
        if key not in self._known:
            self._known[key] = self._strict(call, await self._inner(call))
        return self._known[key]

    def _strict(self, call: Call, completion: Completion) -> Completion:
        reply, usage = completion.parsed, completion.usage
        if self._least <= THRESHOLD or call.stage is not Stage.ANSWER:
            return completion
        assert isinstance(reply, AnswerReply)
        assert usage is not None
        scored = self._scorer(call.query.text, call.excerpts)
        if not reply.answerable or max(one.score for one in scored) >= self._least:
            return completion
        said = "No sentence is close enough."
        reply = reply.model_copy(update={"answerable": False, "answer": said, "quotes": []})
        text = reply.model_dump_json()
        usage = replace(usage, output=self._count(text))
        return replace(completion, text=text, usage=usage, parsed=reply)


def arms(*, table: bool) -> Iterator[Arm]:
    """The router, what it is to beat, and what it would be with other parts."""
    yield Arm(name="always direct", strategy="direct", rival=True)
    yield Arm(name="always compressed, keep 0.2", strategy="compressed", keep=0.2, rival=True)
    if table:
        yield Arm(name="always compressed, Q-table", policy="qtable", rival=True)
    yield Arm(name="always BriefContext", strategy="briefcontext", rival=True)
    yield Arm(name=ROUTER, policy="router")
    settings = ["preflight=published", "issue=0", "issue=0.3", "preflight=off"]
    # the last two: the ladder as it was, and the cheapest of evals.policy on SQuAD
    settings += ["escalate=off", "start=4,factor=2", "keep=own"]
    if table:
        settings.append("qtable=off")
    settings.append("qtable=off,keep=0.4")
    for setting in settings:
        yield Arm(name=f"router:{setting}", policy=f"router:{setting}")


async def measure(
    pool: Pool,
    questions: Sequence[Question],
    ways: Sequence[Arm],
    table: QTable | None,
    least: float,
) -> Mapping[str, list[Outcome]]:
    """By arm: what became of each question, in their order."""
    book = PriceBook(PriceFile(digest="shadow", shadow={NAME: SHADOW}))
    reader, bound = Reader(CachedEncoder(pool.embedder), least), CallBound()

    def completes(_: str, journal: Journal, *_caller: Caller) -> Complete:
        return build(reader, journal=journal, prices=book, bound=bound)

    pipeline = Pipeline(
        retriever=pool.retriever,
        decider=Decider(table=table, embedder=pool.index.meta.embedder),
        completes=completes,
    )
    found: dict[str, list[Outcome]] = {arm.name: [] for arm in ways}
    started = time.perf_counter()
    for number, question in enumerate(questions, 1):
        for arm in ways:
            request = Request(
                quotes="copied",
                query=question.query,
                model=NAME,
                k=K,
                strategy=arm.strategy,
                keep=arm.keep,
                policy=arm.policy,
            )
            report = await pipeline.run(request, Account(), tenant="t")
            found[arm.name].append(_outcome(report, question))
        if number % 25 == 0:
            print(
                f"{number} questions, {time.perf_counter() - started:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return found


def _outcome(report: Report, question: Question) -> Outcome:
    account, outcome = report.account, report.outcome
    assert account.cost is not None
    return Outcome(
        right=isinstance(outcome, Answer) and holds(outcome.text, question.answers),
        refused=not isinstance(outcome, Answer),
        calls=len(account.attempts),
        input=account.usage.total_input,
        output=account.usage.total_output,
        cost=float(account.cost),
        dose=describe(report.decision.dose),
        branch=_branch(report),
    )


def _branch(report: Report) -> str:
    decision, rungs = report.decision, report.outcome.rungs
    if decision.then is not None:
        return f"{decision.strategy}, {len(rungs)} calls refused, then {decision.then.strategy}"
    if rungs:
        calls = "1 call" if len(rungs) == 1 else f"{len(rungs)} calls"
        return f"{decision.strategy}, {calls}"
    return decision.strategy


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Costs:
    """Costs and right answers of one arm, one a question."""

    cost: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Costs:
        """From what became of the questions."""
        return cls(
            cost=np.array([o.cost for o in outcomes]),
            right=np.array([o.right for o in outcomes], float),
        )

    @property
    def each(self) -> float:
        """Dollars a right answer."""
        return float(self.cost.sum() / self.right.sum())

    def drawn(self) -> np.ndarray:
        """Dollars a right answer in samples of the questions, the same samples for every arm."""
        n = len(self.cost)
        picked = np.random.default_rng(0).integers(0, n, (DRAWS, n))
        return np.asarray(self.cost[picked].sum(axis=1) / self.right[picked].sum(axis=1))


def _between(values: np.ndarray, form: str) -> str:
    low, high = np.percentile(values, [2.5, 97.5])
    return f"[{low:{form}}, {high:{form}}]"


def table_of(found: Mapping[str, list[Outcome]]) -> Iterator[str]:
    """A row an arm: shares and means a question with 95 % intervals, and what a right answer costs."""
    yield (
        "| | right | refused | wrong | calls | tokens in | out | $ for 1,000 "
        "| $ for 1,000 right answers |"
    )
    yield "| --- " * 9 + "|"
    for name, outcomes in found.items():
        shares = [
            shown([float(getattr(o, what)) for o in outcomes])
            for what in ("right", "refused", "wrong")
        ]
        means = {
            what: float(np.mean([getattr(o, what) for o in outcomes]))
            for what in ("calls", "input", "output", "cost")
        }
        costs = Costs.of(outcomes)
        yield (
            f"| {name} | {' | '.join(shares)} | {means['calls']:.2f} | {means['input']:,.0f} "
            f"| {means['output']:,.0f} | {1_000 * means['cost']:.3f} "
            f"| {1_000 * costs.each:.3f} {_between(1_000 * costs.drawn(), '.3f')} |"
        )


def against(found: Mapping[str, list[Outcome]], ways: Sequence[Arm]) -> Iterator[str]:
    """What a right answer of the router costs, as a multiple of one of each rival's."""
    router = Costs.of(found[ROUTER])
    for arm in ways:
        if arm.name == ROUTER:
            continue
        other = Costs.of(found[arm.name])
        right = shown(list(router.right - other.right), "+.3f")
        yield (
            f"{ROUTER} / {arm.name}: cost of a right answer ×{router.each / other.each:.3f} "
            f"{_between(router.drawn() / other.drawn(), '.3f')}; right {right}"
        )


def branches(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """How often each dose was decided and how far it went, and what that cost."""
    total = sum(o.cost for o in outcomes)
    for what in ("dose", "branch"):
        groups: dict[str, list[Outcome]] = defaultdict(list)
        for outcome in outcomes:
            groups[getattr(outcome, what)].append(outcome)
        for name, of in sorted(groups.items(), key=lambda item: -len(item[1])):
            cost = sum(o.cost for o in of)
            yield (
                f"  {what} {name}: {len(of)} questions ({len(of) / len(outcomes):.1%}), "
                f"{sum(o.right for o in of)} right, {sum(o.refused for o in of)} refused, "
                f"${1_000 * cost / len(of):.3f} for 1,000, {cost / total:.1%} of all cost"
            )


def beaten(found: Mapping[str, list[Outcome]], ways: Sequence[Arm]) -> Iterator[str]:
    """The arms that are wrong as seldom as the router and give a cheaper right answer.

    Another setting counts where it is cheaper beyond chance and right as often: one that refuses at once costs next to nothing.
    """
    own, wrong = Costs.of(found[ROUTER]), _wrong(found[ROUTER])
    for arm in ways:
        other = Costs.of(found[arm.name])
        if arm.name == ROUTER or other.each >= own.each or _wrong(found[arm.name]) > wrong:
            continue
        surely = np.percentile(own.drawn() / other.drawn(), 2.5) > 1
        if arm.rival or (surely and other.right.mean() >= own.right.mean()):
            yield arm.name


def _wrong(outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([o.wrong for o in outcomes]))


def _table(pool: Pool, given: argparse.Namespace) -> QTable:
    """The Q-table that was named, else one that learned from the other half of the paragraphs."""
    if given.qtable is not None:
        return qtables.load(given.qtable)
    training = argparse.Namespace(questions=TRAINED, k=TRAINED_K, work=given.work)
    half = anyio.run(explore, pool, "train", training, offline_reader(pool.embedder))
    return learn(half.taught, half.begin, Recipe())


def main(argv: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 where the router is not the cheapest."""
    parser = arguments("evals.policy.router", __doc__, questions=300)
    parser.add_argument(
        "--part", choices=("router", "test"), default="router", help="whose questions"
    )
    parser.add_argument("--qtable", type=Path, help="file of a Q-table; default: none")
    parser.add_argument("--table", action="store_true", help="train a Q-table here")
    parser.add_argument("--least", type=float, default=THRESHOLD, help="refuse below this score")
    given = parser.parse_args(argv)
    need(given.data, FILE)
    pool = open_pool(given.data, given.work)
    table = _table(pool, given) if given.table or given.qtable is not None else None
    asked = pool.unseen(given.part, given.questions, given.seed)
    ways = tuple(arms(table=table is not None))
    found = anyio.run(measure, pool, asked, ways, table, given.least)
    print(f"{len(asked)} questions about unseen articles, {K} passages each, preflight {PREFLIGHT}, reader refuses below "
          f"{given.least:.2f}, prices of {SHADOW}\n")  # fmt: skip
    print(*table_of(found), "", *against(found, ways), sep="\n")
    for arm in ways:
        if arm.policy is not None:
            print(f"\n{arm.name}", *branches(found[arm.name]), sep="\n")
    total = sum((Decimal(str(o.cost)) for of in found.values() for o in of), Decimal(0))
    print(f"\nall of it at the shadow price: ${total:.4f}")
    cheaper = list(beaten(found, ways))
    for name in cheaper:
        print(f"{name} gives cheaper right answers at the router's error rate", file=sys.stderr)
    return int(bool(cheaper))


if __name__ == "__main__":
    raise SystemExit(main())
