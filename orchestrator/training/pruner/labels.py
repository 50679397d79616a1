"""Silver labels: retrieve for questions, tell what it will cost, ask, and keep every reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from anyio import to_thread

from orchestrator.budget import open_purse
from orchestrator.concurrency import few_at_once
from orchestrator.connections import Connections
from orchestrator.models import Models
from orchestrator.question.embedding import Spend, encoded
from orchestrator.question.estimates.costs import Dollars
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.question.estimates.typical import Label, Typical
from orchestrator.question.request import Request
from orchestrator.retrieval import make_retriever
from orchestrator.service import index_place, open_connections
from orchestrator.settings import Settings
from orchestrator.training.paid.calls import Buyer, Purchase, buy_all
from orchestrator.training.paid.estimates import Costs
from orchestrator.training.paid.rows import Failed
from orchestrator.training.pruner.examples import STRATEGY, chunk, label_call, shown
from orchestrator.training.pruner.rows import Begin, LabelFile, Labelled
from orchestrator.training.qtable.questions import Examples
from orchestrator.training.qtable.report import left_out, training_estimate
from posology.errors import UnpricedModel
from posology.index.store import Index
from posology.llm.memo import call_key
from posology.published.training import LabelOutput, TrainingEstimate
from posology.types import Call, Excerpt, Query, Usage
from prompts.label import parse_label
from prompts.template import digests

#: questions that are retrieved for, and calls that are estimated, at once
_AT_ONCE = 4
#: tokens of "No answer", at least
_SHORTEST = 2
_NO_PASSAGE = "the index has no passage for it"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What is to be labelled."""

    examples: Examples
    #: where the index is; ``None``: as configured
    index: str | None
    #: a question like all of them: by which model, over how many passages
    request: Request
    #: of the passages' lengths
    seed: int
    tenant: str
    #: dollars for all of the file; ``None``: the tenant's limits alone
    cap: Decimal | None
    settings: Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A question with some sentences of a passage."""

    query: Query
    excerpt: Excerpt

    def call(self, request: Request) -> Call:
        """What labels it."""
        return label_call(
            self.query, self.excerpt, model=request.model, max_tokens=request.max_tokens
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """What is known before anything is spent."""

    #: by call, question by question: those that are not replied to yet
    pairs: Mapping[str, Pair]
    #: lines of questions without a passage
    without: tuple[int, ...]
    begin: Begin
    estimate: TrainingEstimate


async def prepare(wanted: Wanted, models: Models, file: LabelFile) -> Prepared:
    """Retrieve for all questions, and estimate what is not labelled yet. Nothing is spent.

    Raises:
        PosologyError: the index cannot serve, or nobody knows what the model costs.
    """
    settings, request = wanted.settings, wanted.request
    async with (
        open_purse(settings, wanted.tenant) as purse,
        open_connections(settings, models, purse.meter) as connections,
    ):
        # before anything is retrieved
        connections.prices.worst(request.model, input_tokens=1, output_tokens=1)
        index = await to_thread.run_sync(Index.open, index_place(settings, wanted.index))
        retriever = await make_retriever(settings, models, index, reranked=False)

        async def pairs_of(query: Query) -> list[Pair]:
            # nothing is spent here: vectors that are bought were bought before
            vectors = await encoded(retriever.embedder, query.text, Spend(tenant=wanted.tenant))
            retrieval = await retriever.retrieve(query, request.k, request.mode, encoded=vectors)
            chunks = [
                chunk(one, question=query.text, seed=wanted.seed) for one in retrieval.passages
            ]
            return [Pair(query=query, excerpt=one) for one in chunks if one is not None]

        good = wanted.examples.good
        found = await few_at_once(pairs_of, [one.query for one in good], limit=_AT_ONCE)
        pairs = {call_key(pair.call(request)): pair for some in found for pair in some}
        todo = {key: pair for key, pair in pairs.items() if key not in file.content.calls}
        free = connections.prices.cost(request.model, None) == 0
        costs = Costs(calls=len(todo))
        if not free:
            costs = await estimate(
                [pair.call(request) for pair in todo.values()], connections, settings
            )
        balances = await purse.ledger.balances()
    return Prepared(
        pairs=todo,
        without=tuple(one.line for one, some in zip(good, found, strict=True) if not some),
        begin=Begin(
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            model=request.model,
            k=request.k,
            mode=request.mode,
            seed=wanted.seed,
            embedder=index.meta.embedder,
            prompt=digests(["label"])["label"],
        ),
        estimate=training_estimate(
            costs,
            spent=file.content.spent,
            questions=len(good) - sum(not some for some in found),
            answered=len(pairs) - len(todo),
            free=free,
            cap=wanted.cap,
            tenant=wanted.tenant,
            balances=balances,
        ),
    )


async def estimate(calls: Sequence[Call], connections: Connections, settings: Settings) -> Costs:
    """What calls without a schema will cost, by the prices and bounds that they are reserved by.

    Raises:
        UnpricedModel: nobody knows what the model costs.
    """
    counting = Counting(packaged_counter(), native_schema=settings.native_schema)
    typical, prices = Typical(), connections.prices

    def cost(call: Call, read: int, said: int) -> Decimal:
        dollars = prices.cost(call.model, Usage(input=read, output=said))
        if dollars is None:
            raise UnpricedModel(model=call.model)
        return dollars

    def one(call: Call) -> Costs:
        bound = connections.bound(call)
        read = min(round(counting.expected(call)), bound)
        label = Label(stage=call.stage, strategy=STRATEGY, model=call.model)
        said = min(round(typical.output(label)), call.max_tokens)
        expected = cost(call, read, said)
        low = cost(call, min(round(counting.low(call)), read), min(_SHORTEST, said))
        worst = prices.worst(call.model, input_tokens=bound, output_tokens=call.max_tokens)
        # where a price falls with the length of the input, more tokens may cost less
        dollars = Dollars(low=min(low, expected), expected=expected, worst=worst)
        return Costs(calls=1, input=read, output=said, dollars=dollars)

    async def price(call: Call) -> Costs:
        return await to_thread.run_sync(one, call)

    found = await few_at_once(price, calls, limit=_AT_ONCE)
    return Costs(
        calls=len(found),
        input=sum(each.input for each in found),
        output=sum(each.output for each in found),
        dollars=sum((each.dollars for each in found), Dollars()),
    )


async def label(
    wanted: Wanted,
    prepared: Prepared,
    models: Models,
    file: LabelFile,
    tell: Callable[[int], None],
) -> None:
    """Ask what is not labelled yet, through the tenant's budget.

    Raises:
        PosologyError: what would stop every call, such as a budget that is spent. What was replied is in the
            file.
    """
    if not prepared.pairs:
        return
    file.write(prepared.begin)
    async with (
        open_purse(wanted.settings, wanted.tenant) as purse,
        open_connections(wanted.settings, models, purse.meter) as connections,
    ):
        purchase = Purchase(
            completes=connections.complete,
            ledger=purse.ledger,
            cap=wanted.cap,
            at_once=wanted.settings.concurrency,
        )
        await Labeller(
            pairs=prepared.pairs, request=wanted.request, purchase=purchase, file=file, tell=tell
        )()


class Labeller:
    """Labels pairs, a few at a time, and keeps every reply before the next is awaited.

    Args:
        pairs: by call.
        request: by which model.
        purchase: how it is paid for.
        file: keeps what was replied.
        tell: is told how many calls have ended.
    """

    def __init__(
        self,
        *,
        pairs: Mapping[str, Pair],
        request: Request,
        purchase: Purchase,
        file: LabelFile,
        tell: Callable[[int], None],
    ) -> None:
        self._pairs = pairs
        self._request = request
        self._purchase = purchase
        self._file = file
        self._tell = tell

    async def __call__(self) -> None:
        """Ask until all is labelled; what one call alone is refused for is written down.

        Raises:
            PosologyError: what would stop every call; what was under way has ended and is kept.
        """
        buyer = Buyer(self._purchase, spent=self._file.content.spent, failed=self._write)

        async def ask(todo: tuple[str, Pair]) -> None:
            await self._ask(*todo, buyer)

        await buy_all(ask, self._pairs.items(), at_once=self._purchase.at_once)

    async def _ask(self, key: str, pair: Pair, buyer: Buyer) -> None:
        bought = await buyer(pair.call(self._request))
        sentences = shown(pair.excerpt)
        self._write(
            Labelled(
                call=key,
                passage=pair.excerpt.passage.id,
                question=pair.query.text,
                title=pair.excerpt.passage.title,
                sentences=sentences,
                relevant=parse_label(bought.completion.text, len(sentences)),
                reply=bought.completion.text,
                cost=bought.cost,
            )
        )

    def _write(self, row: Labelled | Failed) -> None:
        self._file.write(row)
        self._tell(1)


def conclude(wanted: Wanted, prepared: Prepared, file: LabelFile) -> LabelOutput:
    """What there is now."""
    bad = {one.line: one.reason for one in wanted.examples.bad}
    bad |= dict.fromkeys(prepared.without, _NO_PASSAGE)
    rows = file.content.rows
    told = [row.relevant for row in rows if row.relevant is not None]
    return LabelOutput(
        estimate=prepared.estimate,
        out=str(file.path),
        labelled=len(told),
        empty=sum(not relevant for relevant in told),
        filtered=len(rows) - len(told),
        failed=len(file.content.failures),
        left_out=left_out(bad),
        spent_usd=file.content.spent,
    )
