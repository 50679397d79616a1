"""Compares doubling with fixed numbers of passages, as in Adaptive RAG's experiment.

Usage: ``python -m evals.policy.doubling [--data PATH] [--questions N] [--unanswerable N] [--plot PATH]``.

One question a paragraph is asked of all of SQuAD's pooled paragraphs. The 16 nearest are retrieved, and
the offline reader is shown the first 1, 2, 5, 10 or all of them, or the rungs of a ladder, overlapping or
apart. An answer is right when it holds the gold answer's stemmed words. What is not right is a refusal
("do not know") or a wrong answer, which the seed counts apart, because only the second does harm.
Questions of SQuAD 2.0 that their paragraph does not answer show what a ladder costs where nothing helps.

The offline reader refuses by a threshold on the best sentence's score, and like some language models it
seldom refuses: what a ladder can gain depends on that. So each table is printed for three readers: as it
is built in (0.60), less easily satisfied (0.70), and one that always knows when it is wrong. The last
looks at the gold answers and refuses what is not right: no reader is better calibrated, so what a ladder
gains with it is the most that it can gain. Unlike a language model, all of them score every passage by
itself: more passages cost tokens, and nothing is ever lost in the middle.

Every question's ladder is checked to read no more than twice the passages of its last rung.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import numpy as np

from evals.pooled import (
    FILE,
    SHADOW,
    CachedEncoder,
    Pool,
    Question,
    arguments,
    counter,
    holds,
    interval,
    open_pool,
    prices,
    shown,
)
from policies.doubling import Doubling
from posology.llm.offline.choice import THRESHOLD
from posology.llm.offline.reader import NAME, ExtractiveReader
from posology.llm.offline.scores import SentenceScorer
from posology.seams import Complete, Strategy, TokenCounter
from posology.types import Answer, Call, Completion, Retrieval, Task, Usage
from prompts.answer import AnswerReply
from strategies.direct import Direct
from strategies.evidence import whole
from strategies.ladder import Ladder
from training.gold import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNANSWERABLE = "squad20_dev_part.jsonl.gz"
K = 16
FIXED = (1, 2, 5, 10, 16)
#: readers by name: the score below which they refuse; ``None``: they refuse what is not right
READERS: dict[str, float | None] = {
    f"refuses below {THRESHOLD:.2f} (built in)": THRESHOLD,
    "refuses below 0.70": 0.70,
    "refuses what is wrong (bound)": None,
}
OVERLAPPING = "doubling, overlapping"
APART = "doubling, apart"
FROM_4 = "doubling from 4, overlapping"
_MAX_TOKENS = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """One way to choose how many passages are shown."""

    name: str
    #: passages that are at hand: of a ladder, where it ends
    k: int
    ladder: Doubling | None = None

    @property
    def strategy(self) -> Strategy:
        """What answers."""
        if self.ladder is None:
            return Direct()
        rungs = self.ladder.rungs(self.k)
        return Ladder(Direct(), rungs=rungs, overlapping=self.ladder.overlapping)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What became of one question."""

    right: bool
    refused: bool
    calls: int
    #: passages shown, in all calls together, and in the last
    documents: int
    last: int
    usage: Usage

    @property
    def wrong(self) -> bool:
        """Whether it was answered, and not rightly."""
        return not self.right and not self.refused

    @property
    def tokens(self) -> int:
        """In and out."""
        return self.usage.total_input + self.usage.total_output


class Once:
    """Replies to a call of one question as it did before: ways that show the same passages ask once."""

    def __init__(self, inner: Complete) -> None:
        self._inner = inner
        self._known: dict[tuple[str, ...], Completion] = {}

    async def __call__(self, call: Call) -> Completion:
        """Reply to one call."""
        ids = tuple(excerpt.passage.id for excerpt in call.excerpts)
        if ids not in self._known:
            self._known[ids] = await self._inner(call)
        return self._known[ids]


class Stricter:
    """The offline reader, but for what else it refuses.

    Args:
        inner: the reader.
        count: its counter.
        satisfied: whether a reply to a call stands.
    """

    def __init__(
        self, inner: Complete, count: TokenCounter, satisfied: Callable[[Call, AnswerReply], bool]
    ) -> None:
        self._inner = inner
        self._count = count
        self._satisfied = satisfied

    async def __call__(self, call: Call) -> Completion:
        """Reply, or refuse."""
        completion = await self._inner(call)
        assert isinstance(completion.parsed, AnswerReply)
        assert completion.usage is not None
        if not completion.parsed.answerable or self._satisfied(call, completion.parsed):
            return completion
        reply = completion.parsed.model_copy(
            update={"answerable": False, "answer": "No sentence is close enough.", "quotes": []}
        )
        text = reply.model_dump_json()
        usage = replace(completion.usage, output=self._count(text))
        return replace(completion, text=text, usage=usage, parsed=reply)


class Tally:
    """A :class:`~posology.seams.Complete` that keeps what passes through it."""

    def __init__(self, inner: Complete) -> None:
        self._inner = inner
        self.shown: list[int] = []
        self.usage = Usage()

    async def __call__(self, call: Call) -> Completion:
        """Send one call."""
        completion = await self._inner(call)
        assert completion.usage is not None
        self.shown.append(len(call.excerpts))
        self.usage += completion.usage
        return completion


def arms() -> Iterator[Arm]:
    """Fixed numbers, and ladders that end earlier or later."""
    for k in FIXED:
        yield Arm(name=f"fixed k={k}", k=k)
    for name, overlapping in ((OVERLAPPING, True), (APART, False)):
        full = Doubling(overlapping=overlapping)
        rungs = full.rungs(K)
        for rounds in range(1, len(rungs)):
            read = rungs[rounds - 1] if overlapping else sum(rungs[:rounds])
            yield Arm(name=f"{name}, to {read}", k=K, ladder=replace(full, rounds=rounds))
        yield Arm(name=name, k=K, ladder=full)
    yield Arm(name=FROM_4, k=K, ladder=Doubling(start=4))


async def measure(
    pool: Pool, questions: Sequence[Question]
) -> dict[str, dict[str, list[Measured]]]:
    """By reader and arm: what became of each question, in their order."""
    encoder = CachedEncoder(pool.embedder)
    count = counter()
    inner, scorer = ExtractiveReader(encoder, count), SentenceScorer(encoder)
    ways = list(arms())
    found: dict[str, dict[str, list[Measured]]] = {r: {a.name: [] for a in ways} for r in READERS}
    for n, question in enumerate(questions):
        if n % 100 == 0:
            print(f"{n} of {len(questions)} questions read", file=sys.stderr, flush=True)
        retrieval = await pool.retrieve(question, K)
        best = _best(scorer, question, retrieval)
        once = Once(inner)
        for name, least in READERS.items():
            reader = Stricter(once, count, _satisfied(question, best, least))
            for arm in ways:
                found[name][arm.name].append(await _ask(arm, question, retrieval, reader))
    return found


def _satisfied(
    question: Question, best: dict[str, float], least: float | None
) -> Callable[[Call, AnswerReply], bool]:
    def satisfied(call: Call, reply: AnswerReply) -> bool:
        if least is None:
            return holds(reply.answer, question.answers)
        return max(best[excerpt.passage.id] for excerpt in call.excerpts) >= least

    return satisfied


def _best(scorer: SentenceScorer, question: Question, retrieval: Retrieval) -> dict[str, float]:
    """Each passage's best sentence's score; it does not depend on what else is shown."""
    best: dict[str, float] = {p.passage.id: -1.0 for p in retrieval.passages}
    for one in scorer(question.text, whole(retrieval.passages)):
        id_ = retrieval.passages[one.excerpt].passage.id
        best[id_] = max(best[id_], one.score)
    return best


async def _ask(arm: Arm, question: Question, retrieval: Retrieval, reader: Complete) -> Measured:
    tally = Tally(reader)
    cut = replace(retrieval, passages=retrieval.passages[: arm.k])
    task = Task(
        query=question.query, retrieval=cut, model=NAME, max_tokens=_MAX_TOKENS, quotes="copied"
    )
    outcome = await arm.strategy(task, tally)
    return Measured(
        right=isinstance(outcome, Answer) and holds(outcome.text, question.answers),
        refused=not isinstance(outcome, Answer),
        calls=len(tally.shown),
        documents=sum(tally.shown),
        last=tally.shown[-1],
        usage=tally.usage,
    )


def check(found: dict[str, list[Measured]]) -> None:
    """That no ladder read more than twice what its last call showed, and none apart more than there was.

    Ends the script if one did.
    """
    for name, measured in found.items():
        if name.startswith("fixed"):
            continue
        for one in measured:
            bound = K if name.startswith(APART) else 2 * one.last
            if one.documents > bound:
                sys.exit(f"{name} read {one.documents} passages, more than {bound}")


def unanswerable(pool: Pool, n: int, seed: int) -> list[Question]:
    """Questions that their paragraph does not answer, of as many paragraphs as there are."""
    own = [[q for q in questions if not q.answers] for questions in pool.questions]
    order = random.Random(seed)
    order.shuffle(own)
    found = [of[i] for i in range(max(map(len, own))) for of in own if len(of) > i]
    if len(found) < n:
        raise ValueError(f"there are {len(found)} questions without an answer, not {n}")
    return found[:n]


def _usd(measured: Sequence[Measured]) -> float:
    """Dollars for a thousand questions, at the shadow price."""
    cost = prices().cost(SHADOW, sum((m.usage for m in measured), Usage()))
    assert cost is not None
    return float(cost) / len(measured) * 1_000


def table(found: dict[str, list[Measured]]) -> Iterator[str]:
    """A line an arm: shares with 95 % intervals, means a question."""
    yield (
        f"{'':<34}{'right':<23}{'do not know':<23}{'wrong':<23}"
        f"{'tokens':>7} {'calls':>6} {'read':>6} {'$/1000':>7}"
    )
    for name, measured in found.items():
        shares = "".join(
            f"{shown([float(getattr(m, of)) for m in measured]):<23}"
            for of in ("right", "refused", "wrong")
        )
        tokens, calls, documents = (
            float(np.mean([getattr(m, of) for m in measured]))
            for of in ("tokens", "calls", "documents")
        )
        yield (
            f"{name:<34}{shares}{tokens:>7.0f} {calls:>6.2f} {documents:>6.2f} {_usd(measured):>7.3f}"
        )


def compared(found: dict[str, list[Measured]]) -> Iterator[str]:
    """Ladders against fixed numbers, question by question."""
    for name in (OVERLAPPING, APART, FROM_4):
        for k in (5, K):
            pairs = list(zip(found[name], found[f"fixed k={k}"], strict=True))
            right = shown([float(a.right) - float(b.right) for a, b in pairs], "+.3f")
            wrong = shown([float(a.wrong) - float(b.wrong) for a, b in pairs], "+.3f")
            ratio = sum(a.tokens for a, _ in pairs) / sum(b.tokens for _, b in pairs)
            yield f"{name} less k={k}: right {right}, wrong {wrong}; {ratio:.2f} of its tokens"


def plot(by_reader: dict[str, dict[str, list[Measured]]], path: Path) -> None:
    """Cost against accuracy, as the seed draws it: a panel a reader."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(
        1, len(by_reader), figsize=(4.2 * len(by_reader), 3.8), sharey=True, squeeze=False
    )
    for axes, (reader, found) in zip(panels[0], by_reader.items(), strict=True):
        _draw(axes, found)
        axes.set_title(f"reader that {reader}", fontsize=10)
        axes.set_xlabel("tokens a question")
    panels[0][0].set_ylabel("share answered rightly")
    panels[0][0].legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _draw(axes: Axes, found: dict[str, list[Measured]]) -> None:
    for name, marker in (("fixed", "o"), (OVERLAPPING, "s"), (APART, "^")):
        series = {arm: m for arm, m in found.items() if arm.startswith(name)}
        tokens = [float(np.mean([m.tokens for m in of])) for of in series.values()]
        right = [[float(m.right) for m in of] for of in series.values()]
        means = [float(np.mean(of)) for of in right]
        around = np.array([interval(of) for of in right]).T
        error = np.abs(around - np.array(means))
        axes.errorbar(tokens, means, yerr=error, marker=marker, capsize=2, label=name, alpha=0.7)
    axes.grid(visible=True, alpha=0.3)


def main(argv: list[str] | None = None) -> int:
    """Measure, print the tables, and draw."""
    parser = arguments("evals.policy.doubling", __doc__, questions=400)
    parser.add_argument("--unanswerable", type=int, default=200)
    parser.add_argument("--plot", type=Path, help="where to draw cost against accuracy")
    given = parser.parse_args(argv)
    need(given.data, FILE, UNANSWERABLE)
    pool = open_pool(given.data, given.work)
    asked = pool.sample("test", given.questions, given.seed)
    found = anyio.run(measure, pool, asked)
    for reader, of in found.items():
        check(of)
        print(f"\n{len(asked)} questions, reader that {reader}")
        print(*table(of), *compared(of), sep="\n", flush=True)
    if given.plot is not None:
        plot(found, given.plot)
    other = open_pool(given.data, given.work, UNANSWERABLE)
    nothing = unanswerable(other, given.unanswerable, given.seed)
    for reader, of in anyio.run(measure, other, nothing).items():
        check(of)
        print(f"\n{len(nothing)} questions without an answer, reader that {reader}")
        print(*table(of), sep="\n", flush=True)
    print("\nno ladder read more than twice the passages of its last call")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
