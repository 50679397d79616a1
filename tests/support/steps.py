"""A question that preflight flags, asked for ever less money: in process and through the job records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from orchestrator.question.decider import Decider, remaining_budget
from orchestrator.question.estimates.costs import Estimator
from orchestrator.question.estimates.tokens import Counting
from orchestrator.question.estimates.typical import Typical
from orchestrator.question.machine import RemainingBudget
from orchestrator.question.pipeline import Pipeline, Report
from orchestrator.question.request import Request
from posology.budget.books.audit import Auditor
from posology.budget.ledger.base import nano
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.memory import MemoryLedger
from posology.llm.accounting import Account
from posology.published.jobs import JobOutput
from posology.query import make_query
from posology.seams import Complete
from posology.store import keys
from posology.testing.model import ScriptedModel
from posology.testing.models.embedder import HashEmbedder
from posology.testing.prices import FlatPrices, by_bytes
from posology.text.sentences import split
from posology.types import (
    DECLINE,
    Call,
    Decision,
    Dose,
    Hit,
    Passage,
    Query,
    Ranking,
    Retrieval,
    Retrieved,
    Stage,
    Task,
    Usage,
)
from prompts.answer import AnswerReply
from tests.integration.jobs_store.helpers import MODEL, Bench, request
from tests.integration.jobs_store.local import Local, Wires, reply
from tests.support.replies import in_form
from workers.engine.runner import Runner

if TYPE_CHECKING:
    from orchestrator.connections import Connections
    from posology.index.search.retriever import Retriever
    from posology.testing.model import ScriptedReply

K = 16
QUESTION = "Does it help?"
PREFLIGHT = "router:preflight=published"
LADDER = "doubling"
PRICES = FlatPrices(token=Decimal("0.001"))
CHEAP, COST = Usage(input=100, output=10), Decimal("0.11")
#: almost what is reserved for two passages
DEARER, DEAR = Usage(input=1_200, output=300), Decimal("1.5")
MILLI, NOTHING = Decimal("0.001"), Decimal(0)
MAX_TOKENS = 300


class Disputed:
    """A retriever whose two rankings have nothing in common at the top: preflight flags the question."""

    #: computes here, so that nothing is bought
    embedder = HashEmbedder()

    def __init__(self, *, all_: int = 1_000) -> None:
        self.all = all_

    async def withdrawn(self, *_: object) -> tuple[str, ...]:
        return ()

    async def retrieve(self, query: Query, *, k: int, **_: object) -> Retrieval:
        found = [
            # the later half is longer, so that less than half of all is cheaper to show than the first half
            Passage(id=f"p{i}", text=" ".join([f"Drug {i} was given."] * (2 if i < 8 else 12)))
            for i in range(k)
        ]

        def ranking(method: str, of: Iterable[Passage]) -> Ranking:
            hits = (Hit(passage_id=p.id, score=1 / (i + 1)) for i, p in enumerate(of))
            return Ranking(method=method, hits=tuple(hits))

        return Retrieval(
            query=query,
            passages=tuple(_retrieved(p) for p in found),
            query_vector=np.eye(1, 4, dtype=np.float32)[0],
            dense=ranking("dense", found),
            bm25_rerank=ranking("bm25_rerank", reversed(found)),
            bm25=ranking("bm25", reversed(found)),
            fused=ranking("fused", found),
            index_version="disputed@1",
        )

    async def further(self, before: Retrieval, k: int, **_: object) -> Retrieval:
        """The same and as many more as there are."""
        return await self.retrieve(before.query, k=min(len(before.passages) + k, self.all))


def _retrieved(passage: Passage) -> Retrieved:
    sentences = split(passage.text)
    vectors = np.zeros((len(sentences), 4), np.int8)
    vectors[:, 0] = 127
    return Retrieved(
        passage=passage,
        sentences=tuple(sentences),
        vector=np.eye(1, 4, dtype=np.float32)[0],
        sentence_vectors=vectors,
    )


def _characters(text: str) -> int:
    return len(text)


ESTIMATOR = Estimator(
    prices=PRICES, bound=by_bytes, counting=Counting(_characters), typical=Typical()
)


async def price(dose: Dose) -> Decimal:
    """What a dose costs at worst, or the first rung of its ladder."""
    query = make_query(QUESTION)
    retrieval = await Disputed().retrieve(query, k=K)
    task = Task(query=query, retrieval=retrieval, model=MODEL, max_tokens=MAX_TOKENS)
    return ESTIMATOR.quote(task, dose)


BRIEF = Dose(strategy="briefcontext")
#: in the order of stepping down
STEPS = (
    BRIEF,
    Dose(strategy="compressed", keep=0.4),
    Dose(strategy="direct"),
    Dose(strategy="compressed", keep=0.2),
    Dose(strategy="compressed", keep=0.1),
    *(Dose(strategy="direct", passages=n) for n in (8, 4, 2, 1)),
)
#: those that cost less than all before them; the others are passed over
CHEAPER = tuple(one for one in STEPS if one not in (STEPS[2], STEPS[5]))
DECLINED = Dose(strategy=DECLINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A cap, and the dose that is to be given for it."""

    cap: Decimal
    dose: Dose


def refusing(call: Call) -> ScriptedReply:
    """What does not find the answer in one call, and finds it in partitions."""
    if call.stage is Stage.ANSWER:
        return in_form(
            call, AnswerReply(answerable=False, answer="It is not said.", choice=None, quotes=[])
        )
    return reply(call)


def refusing_the_first(call: Call) -> ScriptedReply:
    """What finds nothing in the first passages, and the answer in those of a second search."""
    first = {f"p{i}" for i in range(K)}
    known = all(one.passage.id in first for one in call.excerpts)
    return refusing(call) if known else reply(call)


def unsupported_by_the_first(call: Call) -> ScriptedReply:
    """What answers without a quote that stands from the first passages, and with one from those of a second search."""
    first = {f"p{i}" for i in range(K)}
    if any(one.passage.id not in first for one in call.excerpts):
        return reply(call)
    return in_form(call, AnswerReply(answerable=True, answer="It works.", choice=None, quotes=[]))


def scripted(
    script: Callable[[Call], ScriptedReply] = reply, *, usage: Usage = CHEAP
) -> ScriptedModel:
    return ScriptedModel(script, usage=usage)


def pipeline(model: Complete, *, policy: str = PREFLIGHT, all_: int = 1_000) -> Pipeline:
    return Pipeline(
        retriever=cast("Retriever", Disputed(all_=all_)),
        decider=Decider(default=policy, estimator=ESTIMATOR),
        estimator=ESTIMATOR,
        completes=Wires(model, prices=PRICES).complete,
    )


def asked(**fields: object) -> Request:
    plain = Request(query=make_query(QUESTION), model=MODEL, k=K, max_tokens=MAX_TOKENS)
    return replace(plain, **fields)  # type: ignore[arg-type]


@dataclass(kw_only=True, slots=True)
class InProcess:
    """Runs of the pipeline, each on a ledger of its own."""

    model: ScriptedModel
    cap: Decimal
    policy: str = PREFLIGHT
    #: passages of the index
    all: int = 1_000
    account: Account = field(default_factory=Account)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)

    async def ask(self, **fields: object) -> Report:
        journal = LedgerJournal(self.ledger, self.account, cap=self.cap)

        async def remaining() -> RemainingBudget | None:
            own = max(NOTHING, self.cap - self.account.charged)
            return remaining_budget(await self.ledger.balances(), own)

        piped = pipeline(self.model, policy=self.policy, all_=self.all)
        request = asked(**fields)
        return await piped.run(request, self.account, journal, tenant="t", remaining=remaining)

    def check(self) -> None:
        """The cap held, and the entries add up to what was charged."""
        assert self.account.charged <= self.cap
        assert self.ledger.over == 0
        total = sum(int(entry["spent"]) for entry in self.ledger.entries)
        assert total == nano(self.account.charged)
        assert sum(int(entry["reserved"]) for entry in self.ledger.entries) == 0


def considered(decision: Decision) -> tuple[Dose, ...]:
    return tuple(offer.dose for offer in decision.offers)


def worker(
    bench: Bench,
    model: Complete,
    *,
    policy: str = PREFLIGHT,
    name: str = "w",
    patience: float = 0.05,
) -> Runner:
    wires = Wires(model, prices=PRICES, wait_timeout=patience)

    async def opened(_: str | None) -> Pipeline:
        return pipeline(model, policy=policy)

    return Runner(bench.worker(name), cast("Connections", wires), opened, keep=0.01)


async def submit(bench: Bench, **fields: object) -> str:
    given = {"k": K, "max_tokens": MAX_TOKENS, **fields}
    return (await bench.store.submit(request(QUESTION, **given), tenant=bench.tenant)).job


async def run(bench: Bench, model: Complete, *, policy: str = PREFLIGHT, **f: object) -> JobOutput:
    job = await submit(bench, **f)
    return await Local(bench=bench, runner=worker(bench, model, policy=policy)).finish(job)


async def limit(bench: Bench, **limits: Decimal) -> None:
    mapping = {name: nano(amount) for name, amount in limits.items()}
    await bench.redis.hset(
        f"{keys.prefix(bench.tenant)}tenant", mapping=cast("dict[Any, Any]", mapping)
    )


async def audited(bench: Bench, out: JobOutput) -> None:
    """The cap held, nothing is set aside any more, and the counters are the sum of the entries."""
    assert out.cap_usd is None or out.charged_usd <= out.cap_usd
    assert out.reserved_usd == NOTHING
    audit = await Auditor(bench.redis, bench.url, bench.tenant).verify()
    assert audit.right, audit
    assert (audit.open, audit.over) == (0, 0)
