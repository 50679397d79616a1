"""``posology demo``: ingest the sample corpus, ask its questions, and count the correct answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from anyio import to_thread
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from orchestrator.cli.ask.explanation import why_job
from orchestrator.cli.demo.money import SHADOW, TOO_LITTLE, limit, shadow_prices, show_account
from orchestrator.cli.jobs.view import show_event
from orchestrator.cli.output.tables import print_form
from orchestrator.cli.terminal import show_answer
from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.question.request import JobRequest
from orchestrator.rendering.forms.columns import Table, table_of
from orchestrator.rendering.words import money
from orchestrator.settings import Settings
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from policies.affordable import describe
from posology.corpus.sample import SampleQuestion, notes_file, questions
from posology.errors import PosologyError
from posology.published.answers import AskOutput, Status
from posology.published.jobs import JobOutput

TENANT = "demo"
#: sample questions with contradictory notes, asked by BriefContext at the end
CONTRADICTORY = ("q14",)
#: a sample question that the preflight flags, asked under decreasing caps
STEPPED_DOWN = "q05"
#: dollars, from ample to too little; at each step one more dose becomes too expensive
CAPS = tuple(map(Decimal, ("0.1", "0.01", "0.0048", "0.0042", "0.0001")))
#: the paper's preflight, which chooses BriefContext more often than the calibrated one; no Q-table, since a
#: configured one was trained on another corpus
POLICY = "router:preflight=published,qtable=off"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A sample question and its result."""

    question: SampleQuestion
    out: AskOutput

    @property
    def cited_gold(self) -> bool:
        """Return whether the answer cites at least one gold passage."""
        return any(item.passage.id in self.question.gold for item in self.out.evidence)

    @property
    def quoted_gold(self) -> bool:
        """Return whether a quote overlaps the words of the gold answer."""
        return any(
            item.passage.id == gold.passage_id
            and (gold.quote in item.context or item.quote in gold.quote)
            for item in self.out.evidence
            for gold in self.question.evidence
        )

    @property
    def right(self) -> bool:
        """Return whether the answer quotes the gold answer, or the refusal is due."""
        if self.question.unanswerable:
            return self.refused
        return not self.refused and self.quoted_gold

    @property
    def refused(self) -> bool:
        """Return whether the question was refused."""
        return self.out.status is Status.REFUSED


@dataclass(frozen=True, kw_only=True, slots=True)
class Demo:
    """Settings of the demonstration."""

    settings: Settings
    #: environment of its processes
    environment: Mapping[str, str] = field(repr=False)
    #: folder of the sample index
    place: str
    #: data folder of its stack
    folder: Path
    model: str
    k: int
    #: all 40 questions and a table, instead of a dozen answers
    everything: bool

    @property
    def index(self) -> str:
        """Return the absolute path of the index."""
        return str(Path(self.place).absolute())


async def run_demo(console: Console, demo: Demo) -> list[Asked]:
    """Ingest the sample notes, start a stack of Redis and a worker, and ask through its queue.

    The demonstration starts its own stack, because the workers of another would answer from another index.

    Raises:
        PosologyError: the index cannot be built, or the stack does not start.
    """
    with notes_file() as notes:
        report = await to_thread.run_sync(
            lambda: run_ingest([notes], demo.settings, Target(place=demo.place), console=console)
        )
    console.print(f"sample corpus: {report.good} notes in {demo.place}")
    environment = demo.environment
    if demo.model == SHADOW[0] and demo.settings.prices is None:
        prices = shadow_prices(demo.folder.absolute())
        environment = {**environment, "POSOLOGY_PRICES": str(prices)}
        console.print(f"prices: as for {SHADOW[1]}; nothing is paid")
    options = StackOptions(
        environment=environment,
        folder=demo.folder,
        concurrency=4,
        api=False,
        index=demo.index,
    )
    async with running_stack(options) as stack, open_store(stack.redis_url) as store:
        console.print(f"stack: Redis and one worker in {demo.folder}\n")
        await limit(store, TENANT)
        asked = await _ask(console, demo, store)
        console.print(Rule(style="dim"))
        print_form(console, summary(asked))
        if not demo.everything:
            await _read_in_partitions(console, demo, store)
            await step_down(console, lambda cap: _under(demo, store, cap))
            await show_account(console, store, TENANT, await _capped(demo, store))
    console.print(
        f"\nIn a browser: posology up --index {demo.place}, then http://127.0.0.1:{options.port}/console",
        soft_wrap=True,
        markup=False,
    )
    return asked


async def _capped(demo: Demo, store: JobStore) -> JobOutput:
    """Run a job whose cap is below the cost of its first call."""
    job = await _submit(demo, store, questions()[0], k=demo.k, max_cost_usd=TOO_LITTLE)
    return await store.wait(job, tenant=TENANT)


async def _under(demo: Demo, store: JobStore, cap: Decimal) -> JobOutput:
    """Run a job under a cap."""
    (question,) = (q for q in questions() if q.id == STEPPED_DOWN)
    job = await _submit(demo, store, question, k=16, policy=POLICY, max_cost_usd=cap)
    return await store.wait(job, tenant=TENANT)


async def _ask(console: Console, demo: Demo, store: JobStore) -> list[Asked]:
    """Submit all questions, then print each result."""
    chosen = [q for q in questions() if demo.everything or q.demo]
    jobs = [await _submit(demo, store, q, k=demo.k) for q in chosen]
    asked: list[Asked] = []
    for question, job in zip(chosen, jobs, strict=True):
        done = Asked(question=question, out=_result(await store.wait(job, tenant=TENANT)))
        asked.append(done)
        if demo.everything:
            console.print(_line(done))
        else:
            show_answer(console, done.out, title=question.id)
            console.print(Text(f"  expected: {_gold(question)}\n", style="dim"))
    return asked


async def _read_in_partitions(console: Console, demo: Demo, store: JobStore) -> None:
    """Ask questions with contradictory sources by BriefContext, and print the events."""
    console.print(
        Rule("BriefContext: partitions of the passages are read in parallel", style="dim")
    )
    for question in questions():
        if question.id not in CONTRADICTORY:
            continue
        job = await _submit(demo, store, question, k=16, strategy="briefcontext")
        async for event in store.events(job, tenant=TENANT):
            show_event(console, event)
        show_answer(console, _result(await store.get(job, tenant=TENANT)), title=question.id)
        console.print(Text(f"  expected: {_gold(question)}\n", style="dim"))


async def _submit(
    demo: Demo,
    store: JobStore,
    question: SampleQuestion,
    *,
    k: int,
    strategy: str | None = None,
    policy: str | None = None,
    max_cost_usd: Decimal | None = None,
) -> str:
    query = question.query
    request = JobRequest(
        question=query.text,
        form=query.form,
        options={option.label: option.text for option in query.options} or None,
        model=demo.model,
        k=k,
        strategy=strategy,
        policy=policy,
        max_cost_usd=max_cost_usd,
    )
    return (await store.submit(request.settled(demo.settings), tenant=TENANT)).job


def _result(job: JobOutput) -> AskOutput:
    if job.result is None:
        reason = job.error.message if job.error else f"state {job.state}"
        raise PosologyError(f"job {job.id} has no result: {reason}")
    return job.result


def _line(asked: Asked) -> Text:
    question = asked.question
    right = asked.refused if question.unanswerable else asked.cited_gold
    mark = ("✓ ", "green") if right else ("✗ ", "red")
    status = f"{asked.out.status:<12}"
    return Text.assemble(mark, (f"{question.id} {status} ", "dim"), question.query.text)


def _gold(question: SampleQuestion) -> str:
    if question.unanswerable:
        return "a refusal: no note answers this"
    verdict = f"{question.choice}: " if question.choice else ""
    return f"{verdict}{question.answer}  [{', '.join(sorted(question.gold))}]"


def summary(asked: Sequence[Asked]) -> Table:
    """Return the table of ``posology demo --all``: shares over all questions."""
    answerable = [a for a in asked if not a.question.unanswerable]
    unanswerable = [a for a in asked if a.question.unanswerable]
    hits = {
        "answered rightly: the gold words are quoted": [a.right and not a.refused for a in asked],
        "refused rightly: no note answers": [a.right and a.refused for a in asked],
        "wrong: another answer, or a refusal that is not due": [not a.right for a in asked],
        "answerable: a gold passage is cited": [a.cited_gold for a in answerable],
        "answerable: the gold words are quoted": [a.quoted_gold for a in answerable],
        "answerable: refused": [a.refused for a in answerable],
        "unanswerable: refused": [a.refused for a in unanswerable],
    }
    shares = (
        (name, f"{sum(some)}/{len(some)}", f"{sum(some) / len(some):.3f}" if some else None)
        for name, some in hits.items()
    )
    spent = [a.out.spending for a in asked]
    costs = [one.cost_usd for one in spent if one.cost_usd is not None]
    sums = (
        ("tokens in", sum(one.usage.total_input for one in spent), ""),
        ("tokens out", sum(one.usage.total_output for one in spent), ""),
        ("cost", money(sum(costs, Decimal(0)) if len(costs) == len(spent) else None), ""),
    )
    return table_of("measure, count, share", (*shares, *sums), title="sample questions")


async def step_down(console: Console, ask: Callable[[Decimal], Awaitable[JobOutput]]) -> None:
    """Ask one question under each of :data:`CAPS`; print the doses, and explain the last but one.

    Args:
        console: to print to.
        ask: asks the question under a cap and waits for its end.
    """
    console.print(
        Rule("Policies: the dose that the question needs and the budget allows", style="dim")
    )
    jobs = [await ask(cap) for cap in CAPS]
    rows = (
        (cap, describe(job.decision.dose) if job.decision else "undecided", job.charged_usd)
        for cap, job in zip(CAPS, jobs, strict=True)
    )
    print_form(console, table_of("cap, dose, cost", rows, texts="dose", title=jobs[0].question))
    why_job(console, jobs[-2])
