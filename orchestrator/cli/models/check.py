"""Small calls that tell whether a model does what a user needs, and more that compare it with the table of families."""

from __future__ import annotations

import json
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from orchestrator.cli.models.forms import CheckedCall, ModelCheck, ModelFinding
from orchestrator.connections import Connections
from posology.budget.ledger.base import Ledger
from posology.budget.ledger.journal import LedgerJournal
from posology.corpus import sample
from posology.errors import BudgetError, ProviderError, UnusableReply
from posology.llm.accounting import Account
from posology.llm.models.effort import effort_of, reasoning_tokens
from posology.llm.models.families import capabilities
from posology.llm.providers.local.servers import described
from posology.query import make_query
from posology.seams import Complete
from posology.text.sentences import split
from posology.types import (
    Call,
    Completion,
    Effort,
    Excerpt,
    Form,
    Message,
    Passage,
    PromptId,
    Query,
    Role,
    Stage,
)
from prompts.answer import render_answer, reply_schema
from prompts.extract import extract_schema, render_extract
from prompts.lengths import reply_tokens

#: sample notes that the question of two words reads
_FEW: Final = 3
#: sample notes that a long prompt has: with its instructions, more tokens than the smallest prompt that providers cache
_NOTES: Final = 12
#: output tokens of a reply of one word, reasoning apart
_WORD: Final = 64
_STRATEGY: Final = "check"
_PROMPT = PromptId(name="check", digest="0" * 16)
#: words that tokenizers cut into many pieces
_HARD = (
    "Pembrolizumab 200 mg q3w, 1.25×10⁻³ µmol/L; HbA1c 7.9→6.4 %; IL-6/TNF-α, β₂-agonist; p<0.001; "
    "(−)-epigallocatechin-3-gallate; rs1801133 C677T; NCT04280705; 5'-AGGTCCATGA-3'; ≥65–80 yr. "
)
_FOREIGN = "El paracetamol reduce la fiebre. Парацетамол снижает температуру. 对乙酰氨基酚可退烧。 "


@dataclass(kw_only=True)
class Check:
    """The check of one model.

    Args:
        model: ``provider:name``.
        connections: has the call stack, prices and bounds.
        ledger: of the tenant that pays.
        cap: maximum dollars of all calls.
        effort: as :func:`~posology.llm.models.effort.parse_effort` takes it; ``None``: the default of each stage.
        thorough: whether caching, effort and bounds are checked as well.
    """

    model: str
    connections: Connections
    ledger: Ledger
    cap: Decimal
    effort: str | None = None
    thorough: bool = False
    _account: Account = field(init=False, default_factory=Account)
    _findings: list[ModelFinding] = field(init=False, default_factory=list)
    _calls: list[CheckedCall] = field(init=False, default_factory=list)
    #: largest share of the table's bound that the provider counted; ``None``: nothing was counted
    share: float | None = field(init=False, default=None)

    async def run(self) -> ModelCheck:
        """Make the calls, one after the other, until the first that cannot be made."""
        journal = LedgerJournal(self.ledger, self._account, cap=self.cap)
        complete = self.connections.complete(self.model, journal)
        for name, step in self._steps().items():
            try:
                await step(complete)
            except BudgetError as error:
                self._find(name, f"not checked: {error.message}", ok=None)
                break
            except UnusableReply as error:
                self._find(name, error.message, ok=False)
            except ProviderError as error:
                self._find(name, error.message, ok=False)
                break
        self._sum()
        return ModelCheck(
            model=self.model,
            ok=all(one.ok is not False for one in self._findings),
            findings=tuple(self._findings),
            calls=tuple(self._calls),
            cost_usd=self._account.cost,
            charged_usd=self._account.charged,
            seconds=statistics.median(one.seconds for one in self._calls) if self._calls else None,
        )

    def _steps(self) -> dict[str, Callable[[Complete], Awaitable[None]]]:
        few: dict[str, Callable[[Complete], Awaitable[None]]] = {
            "server": self._server,
            "key": self._key,
            "schema": self._question,
        }
        if not self.thorough:
            return few
        return few | {
            "caching": self._caching,
            "effort": self._lowest,
            "higher effort": self._higher,
            "bound, abstracts": lambda c: self._bound(c, "bound, abstracts", _notes_text()),
            "bound, formulas": lambda c: self._bound(c, "bound, formulas", _HARD * 8),
            "bound, prompts": self._prompts,
            "bound, languages": lambda c: self._bound(c, "bound, languages", _FOREIGN * 10),
        }

    async def _server(self, _complete: Complete) -> None:
        """Ask a server of one's own what it serves, which is no call."""
        if (found := await self.connections.server(self.model)) is not None:
            self._find("server", described(found), ok=True)

    async def _key(self, complete: Complete) -> None:
        completion = await self._send("key", self._word("Reply with the word OK."), complete)
        served = completion.served_model
        self._find("key", f"works; served by {served}", ok=True)

    async def _question(self, complete: Complete) -> None:
        """Ask a question of yes or no whose answer stands in its passages."""
        before = len(self._account.attempts)
        known = _with_verdict()
        excerpts = _excerpts([one.passage_id for one in known.evidence])[:_FEW]
        completion = await self._send("schema", self._answer(known.query, excerpts), complete)
        repaired = len(self._account.attempts) - before > 1
        found = "kept after a second call" if repaired else "kept at once"
        self._find("schema", found, ok=not repaired)
        choice = getattr(completion.parsed, "choice", None)
        verdict = f"{choice}, as its passages say"
        if choice != known.choice:
            verdict = f"{choice or 'none'}, where its passages say {known.choice}"
        self._find("verdict", verdict, ok=choice == known.choice)
        if completion.latency and (usage := completion.usage) is not None:
            pace = usage.total_output / completion.latency
            read = f"{usage.total_input:,} tokens read, {usage.total_output:,} written in {completion.latency:.1f} s"
            self._find("speed", f"{read}: {pace:.1f} a second, reading included", ok=True)

    async def _caching(self, complete: Complete) -> None:
        # what the first call may write, the second may read
        await self._send("long prompt", self._answer(), complete)
        completion = await self._send("caching", self._answer(), complete)
        usage = completion.usage
        if usage is None:
            return
        written = usage.cache_write_5m + usage.cache_write_1h
        read = f"{usage.cache_read:,} tokens read from a cache"
        if written:
            self._find(
                "caching", f"{written:,} tokens written to a cache, which is billed", ok=False
            )
        else:
            self._find("caching", f"nothing written, {read}", ok=True)

    async def _lowest(self, complete: Complete) -> None:
        call = self._extract()
        completion = await self._send("effort", call, complete)
        level = call.effort or "none sent"
        if completion.usage is None:
            self._find("effort", f"{level}: tokens of reasoning unknown", ok=None)
            return
        reasoned = completion.usage.reasoning
        silent = call.effort == "none" or not capabilities(self.model).reasons(call.effort)
        self._find(
            "effort", f"{level}: {reasoned:,} tokens of reasoning", ok=not (silent and reasoned)
        )

    async def _higher(self, complete: Complete) -> None:
        levels = capabilities(self.model).efforts
        call = self._answer()
        higher = levels[levels.index(call.effort) + 1 :] if call.effort in levels else ()
        if not higher:
            self._find("higher effort", "the model has no higher level to compare with", ok=None)
            return
        completion = await self._send("higher effort", self._answer(level=higher[0]), complete)
        if completion.usage is None:
            self._find("higher effort", f"{higher[0]}: tokens of reasoning unknown", ok=None)
            return
        reasoned = completion.usage.reasoning
        # a model may decide that this question needs no reasoning
        found = f"{higher[0]}: {reasoned:,} tokens of reasoning"
        self._find("higher effort", found, ok=True if reasoned else None)

    async def _bound(self, complete: Complete, name: str, text: str) -> None:
        call = self._word(f"{text}\n\nReply with the word OK.")
        if await self._count(name, call):
            return
        completion = await self._send(name, call, complete)
        if completion.usage is not None:
            self._counted(name, call, completion.usage.total_input, "counted")

    async def _prompts(self, _complete: Complete) -> None:
        await self._count("bound, answer", self._answer())
        await self._count("bound, extract", self._extract())

    async def _count(self, name: str, call: Call) -> bool:
        """Have the provider count a call's tokens free of charge, and return whether it did."""
        counter = self.connections.counter(self.model)
        if counter is None:
            return False
        try:
            counted = await counter(call)
        except ProviderError:
            # a gateway may lack the endpoint; a call tells as well
            return False
        self._counted(name, call, counted, "counted free of charge")
        return True

    def _counted(self, name: str, call: Call, counted: int, how: str) -> None:
        """Compare a count with what is reserved."""
        bound = self.connections.bound(call)
        self.share = max(self.share or 0.0, counted / self.connections.bound.of_table(call))
        found = f"{counted:,} tokens {how}, {bound:,} reserved ({counted / bound:.0%})"
        self._find(name, found, ok=counted <= bound)

    async def _send(self, name: str, call: Call, complete: Complete) -> Completion:
        before = len(self._account.attempts)
        try:
            return await complete(call)
        finally:
            for attempt in self._account.attempts[before:]:
                usage = attempt.usage
                self._calls.append(
                    CheckedCall(
                        name=name,
                        effort=call.effort,
                        tokens_in=None if usage is None else usage.total_input,
                        tokens_out=None if usage is None else usage.output,
                        tokens_reasoning=None if usage is None else usage.reasoning,
                        input_bound=attempt.input_bound,
                        output_bound=attempt.max_tokens,
                        cost_usd=attempt.cost,
                        seconds=attempt.latency,
                        error=attempt.error,
                    )
                )

    def _sum(self) -> None:
        """Judge all calls together: their usage, and the bounds of their output."""
        if not self._calls:
            return
        silent = sum(one.tokens_in is None for one in self._calls)
        known = "every reply has its usage" if not silent else f"{silent} replies have no usage"
        self._find("usage", known, ok=not silent)
        over = [
            one.name
            for one in self._calls
            if (one.tokens_out or 0) + (one.tokens_reasoning or 0) > one.output_bound
        ]
        self._find(
            "output",
            f"above its bound: {', '.join(over)}" if over else "within its bounds",
            ok=not over,
        )

    def _find(self, name: str, found: str, *, ok: bool | None) -> None:
        self._findings.append(ModelFinding(name=name, ok=ok, found=found))

    def _answer(
        self,
        question: Query | None = None,
        excerpts: tuple[Excerpt, ...] = (),
        *,
        level: Effort | None = None,
    ) -> Call:
        question, excerpts = question or _free_question(), excerpts or _excerpts()
        effort = level or effort_of(self.model, Stage.ANSWER, self.effort)
        rendered = render_answer(question, excerpts, quotes="sentences")
        return replace(
            self._call(Stage.ANSWER, effort),
            query=question,
            excerpts=excerpts,
            messages=rendered.messages,
            prompt=rendered.prompt,
            quotes="sentences",
            schema=reply_schema(question, len(excerpts), quotes="sentences"),
        )

    def _extract(self) -> Call:
        question = _free_question()
        excerpts = _excerpts()[:2]
        rendered = render_extract(question, excerpts)
        return replace(
            self._call(Stage.EXTRACT, effort_of(self.model, Stage.EXTRACT, self.effort)),
            query=question,
            excerpts=excerpts,
            messages=rendered.messages,
            prompt=rendered.prompt,
            schema=extract_schema(len(excerpts)),
        )

    def _word(self, text: str) -> Call:
        effort = effort_of(self.model, Stage.LABEL, self.effort)
        return replace(
            self._call(Stage.LABEL, effort),
            messages=(Message(role=Role.USER, content=text),),
            max_tokens=_WORD + reasoning_tokens(self.model, effort),
        )

    def _call(self, stage: Stage, effort: Effort | None) -> Call:
        return Call(
            stage=stage,
            model=self.model,
            query=make_query("Is this model fit for use?"),
            excerpts=(),
            messages=(),
            prompt=_PROMPT,
            effort=effort,
            strategy=_STRATEGY,
            max_tokens=reply_tokens(stage, reasoning=reasoning_tokens(self.model, effort)),
        )


def _free_question() -> Query:
    return next(one.query for one in sample.questions() if one.query.form is Form.FREE)


def _with_verdict() -> sample.SampleQuestion:
    return next(
        one for one in sample.questions() if one.query.choices and one.choice in ("yes", "no")
    )


def _passages() -> list[Passage]:
    with sample.notes_file() as path:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Passage(id=str(r["id"]), title=str(r["title"]), text=str(r["text"])) for r in rows]


def _excerpts(first: Sequence[str] = ()) -> tuple[Excerpt, ...]:
    """Return excerpts of sample notes.

    Args:
        first: ids of those to begin with.
    """
    notes = sorted(_passages(), key=lambda one: one.id not in first)[:_NOTES]
    return tuple(Excerpt(passage=one, sentences=tuple(split(one.text))) for one in notes)


def _notes_text() -> str:
    return "\n\n".join(one.text for one in _passages()[:_NOTES])
