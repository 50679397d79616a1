"""Silver labels of a pruner: a paid run over the passages that are retrieved for some questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from anyio import to_thread

from orchestrator.connections import Connections
from orchestrator.question.embedding import Spend, encoded
from orchestrator.question.estimates.costs import Dollars
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.question.estimates.typical import Label, Typical
from orchestrator.question.request import Request
from orchestrator.retrieval import make_retriever
from orchestrator.service import index_place
from orchestrator.settings import Settings
from orchestrator.training.forms import LabelOutput, TrainingEstimate
from orchestrator.training.paid.calls import Buys
from orchestrator.training.paid.rows import Row
from orchestrator.training.paid.run import Costs, PaidRun, Terms
from orchestrator.training.pruner.examples import STRATEGY, chunk, label_call, lines
from orchestrator.training.pruner.rows import Begin, LabelFile, Labelled, Labels
from orchestrator.training.qtable.questions import Examples
from orchestrator.training.qtable.run import NO_PASSAGE, left_out
from posology.concurrency import map_concurrently
from posology.errors import UnpricedModel
from posology.index.store import Index
from posology.llm.memo import call_key
from posology.types import Call, Excerpt, Query, Tier, Usage
from prompts.label import parse_label
from prompts.template import digests

#: concurrent retrievals and estimates
_AT_ONCE = 4
#: minimum output tokens: those of "No answer"
_SHORTEST = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A question with some sentences of a passage."""

    query: Query
    excerpt: Excerpt

    def call(self, request: Request) -> Call:
        """Return the call that labels the pair."""
        return label_call(
            self.query,
            self.excerpt,
            model=request.model,
            max_tokens=request.max_tokens,
            effort=request.effort,
        )


class Labelling(PaidRun[Labels, tuple[str, Pair]]):
    """Labels pairs of question and passage, one call for each.

    Args:
        file: keeps the labels.
        pairs: by digest of their call, question by question.
        request: model and limits of the calls.
        begin: describes how pairs are labelled.
        without: lines of the questions without a passage.
    """

    def __init__(
        self,
        file: LabelFile,
        pairs: Mapping[str, Pair],
        request: Request,
        begin: Begin,
        without: tuple[int, ...],
    ) -> None:
        super().__init__(
            file,
            [(key, pair) for key, pair in pairs.items() if key not in file.content.calls],
            model=request.model,
        )
        self.pairs = pairs
        self.without = without
        self._request = request
        self._begin = begin

    def begin(self) -> Sequence[Row]:
        """Return the ``begin`` row if there are pairs to label."""
        return (self._begin,) if self.todo else ()

    def kept(self, call: str) -> bool:
        """See :meth:`PaidRun.kept`."""
        return call in self.file.content.calls

    async def price(self, connections: Connections, settings: Settings, tier: Tier) -> Costs:
        """Estimate the missing calls; see :meth:`PaidRun.price`."""
        calls = [replace(pair.call(self._request), tier=tier) for _, pair in self.todo]
        return await estimate(calls, connections, settings)

    async def ask(self, item: tuple[str, Pair], buyer: Buys) -> None:
        """Label a pair and keep the reply."""
        key, pair = item
        bought = await buyer(pair.call(self._request))
        sentences = lines(pair.excerpt)
        await self.file.keep(
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Questions whose passages are labelled."""

    examples: Examples
    #: folder of the index; ``None``: as configured
    index: str | None
    #: model, number of passages and ranking for all questions
    request: Request
    #: of the excerpts' lengths
    seed: int

    async def plan(self, terms: Terms, file: LabelFile) -> Labelling:
        """Retrieve for all questions. Nothing is spent.

        Raises:
            PosologyError: the index cannot serve.
        """
        request = self.request
        index = await to_thread.run_sync(Index.open, index_place(terms.settings, self.index))
        retriever = await make_retriever(terms.settings, terms.models, index, reranked=False)

        async def pairs_of(query: Query) -> list[Pair]:
            # free: a paid embedder's vectors of these questions are cached
            vectors = await encoded(retriever.embedder, query.text, Spend(tenant=terms.tenant))
            retrieval = await retriever.retrieve(query, request.k, request.mode, encoded=vectors)
            chunks = [chunk(one, question=query.text, seed=self.seed) for one in retrieval.passages]
            return [Pair(query=query, excerpt=one) for one in chunks if one is not None]

        good = self.examples.good
        by_question = await map_concurrently(pairs_of, [one.query for one in good], limit=_AT_ONCE)
        begin = Begin(
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            model=request.model,
            k=request.k,
            mode=request.mode,
            seed=self.seed,
            embedder=index.meta.embedder,
            prompt=digests(["label"])["label"],
        )
        pairs = {call_key(pair.call(request)): pair for some in by_question for pair in some}
        without = tuple(one.line for one, some in zip(good, by_question, strict=True) if not some)
        return Labelling(file, pairs, request, begin, without)


async def estimate(calls: Sequence[Call], connections: Connections, settings: Settings) -> Costs:
    """Estimate calls without a schema by the prices and bounds of their reservations.

    Raises:
        UnpricedModel: the model has no price.
    """
    counting = Counting(packaged_counter(), native_schema=settings.native_schema)
    typical, prices = Typical(), connections.prices

    def cost(call: Call, tokens_in: int, tokens_out: int) -> Decimal:
        usage = Usage(input=tokens_in, output=tokens_out)
        dollars = prices.cost(call.model, usage, call.tier)
        if dollars is None:
            raise UnpricedModel(model=call.model, tier=call.tier)
        return dollars

    def one(call: Call) -> Costs:
        bound = connections.bound(call)
        tokens_in = min(round(counting.expected(call)), bound)
        label = Label(stage=call.stage, strategy=STRATEGY, model=call.model)
        tokens_out = min(round(typical.output(label)), call.max_tokens)
        expected = cost(call, tokens_in, tokens_out)
        low = cost(call, min(round(counting.low(call)), tokens_in), min(_SHORTEST, tokens_out))
        worst = prices.worst(
            call.model, input_tokens=bound, output_tokens=call.max_tokens, tier=call.tier
        )
        # if a price falls with the length of the input, more tokens may cost less
        dollars = Dollars(low=min(low, expected), expected=expected, worst=worst)
        return Costs(calls=1, input=tokens_in, output=tokens_out, dollars=dollars)

    async def price(call: Call) -> Costs:
        return await to_thread.run_sync(one, call)

    found = await map_concurrently(price, calls, limit=_AT_ONCE)
    return Costs(
        calls=len(found),
        input=sum(each.input for each in found),
        output=sum(each.output for each in found),
        dollars=sum((each.dollars for each in found), Dollars()),
    )


def conclude(wanted: Wanted, run: Labelling, estimate: TrainingEstimate) -> LabelOutput:
    """Return the published form of a label file."""
    bad = {one.line: one.reason for one in wanted.examples.bad}
    bad |= dict.fromkeys(run.without, NO_PASSAGE)
    content = run.file.content
    clear = [row.relevant for row in content.rows if row.relevant is not None]
    return LabelOutput(
        estimate=estimate,
        out=str(run.file.path),
        labelled=len(clear),
        empty=sum(not relevant for relevant in clear),
        filtered=len(content.rows) - len(clear),
        failed=len(content.failures),
        left_out=left_out(bad),
        spent_usd=content.spent,
    )
