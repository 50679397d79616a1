"""The whole stack against llama.cpp's server, which nobody here wrote, with models of random weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from orchestrator.connections import Connections
from orchestrator.settings import load_settings
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.memory import MemoryLedger
from posology.errors import ContextTooLong, NothingRead, TruncatedReply, UnusableReply
from posology.llm.accounting import Account
from posology.llm.calls import ReplyProgress
from posology.llm.pace import LOCAL
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.schema import response_schema
from posology.query import make_query
from posology.seams import Complete, Send, Strategy
from posology.types import (
    Answer,
    Attempt,
    Call,
    Finish,
    Form,
    Message,
    Outcome,
    Passage,
    Query,
    Refusal,
    Role,
    Stage,
    Task,
)
from prompts.answer import reply_schema
from prompts.extract import extract_schema
from prompts.reduce import reduce_schema
from strategies.briefcontext.strategy import BriefContext
from strategies.direct import Direct
from strategies.ladder import Ladder
from tests.support.llama import Counts, Llama, serving, write_model
from tests.support.tasks import retrieval_of

pytest.importorskip("xllamacpp", reason="llama.cpp's server is not installed (xllamacpp)")
pytest.importorskip("gguf", reason="models cannot be written (gguf)")

pytestmark = pytest.mark.anyio

MODEL = "openai:tiny"
#: of weights
SEEDS = (1, 2, 3)
WINDOW = 4_096
#: dollars per million tokens, so that money is tokens
PRICES = f'[models."{MODEL}"]\ninput = "1"\ncache_read = "1"\noutput = "2"\n'
#: words of a passage of which the window holds few
LONG = 600
FORMS = (Form.FREE, Form.YES_NO, Form.YES_NO_MAYBE)
SCHEMAS: list[tuple[Stage, type[BaseModel]]] = [
    (Stage.ANSWER, reply_schema(make_query("Is it?", form="yes_no"), 4)),
    (Stage.ANSWER, reply_schema(make_query("Which?", options={"A": "a", "B": "b"}), 16)),
    (Stage.EXTRACT, extract_schema(3)),
    (Stage.REDUCE, reduce_schema(("yes", "no"), 12)),
    (Stage.ANSWER, reply_schema(make_query("Is it?", form="yes_no"), 4, "sentences")),
    (Stage.ANSWER, reply_schema(make_query("Which?"), 16, "sentences")),
    (Stage.EXTRACT, extract_schema(3, "sentences")),
    (Stage.REDUCE, reduce_schema(("yes", "no"), 12, "sentences")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Llama]:
    """One slot: a second request waits in the server."""
    write_model(folder / "tiny.gguf", seed=SEEDS[0])
    with serving(folder / "tiny.gguf", window=WINDOW) as running:
        yield running


@dataclass(frozen=True, kw_only=True)
class Rig:
    """The stack as the system builds it, and its books."""

    server: Llama
    complete: Complete
    account: Account
    ledger: MemoryLedger
    #: of the server, when the rig was built
    before: Counts

    def check_books(self) -> None:
        """Every token that the server counted is in the account and in the ledger, and none besides."""
        counted = self.server.counts() - self.before
        usage = self.account.usage
        assert self.account.unknown == 0
        assert (usage.total_input, usage.total_output) == (counted.prompt, counted.predicted)
        dollars = Decimal(counted.prompt + 2 * counted.predicted) / 1_000_000
        assert self.account.cost == dollars
        entries = [one for one in self.ledger.entries if one["kind"] == "settle"]
        assert len(entries) == len(self.account.attempts)
        assert not any(one.over_bound for one in self.account.attempts)


class Watched:
    """A journal that compares each attempt with the server's counts. One call is made at a time."""

    def __init__(self, inner: LedgerJournal, server: Llama) -> None:
        self._inner = inner
        self._server = server
        self._before = server.counts()
        self.open = inner.open

    async def close(self, attempt: Attempt, completion: object) -> None:
        now = self._server.counts()
        counted, self._before = now - self._before, now
        assert attempt.usage is not None
        assert attempt.usage.total_input == counted.prompt
        assert attempt.usage.total_output == counted.predicted
        await self._inner.close(attempt, completion)  # type: ignore[arg-type]


@asynccontextmanager
async def rigged(
    server: Llama, folder: Path, *, each: bool = False, **settings: str
) -> AsyncIterator[Rig]:
    """Build the stack.

    Args:
        server: that answers.
        folder: for the prices.
        each: whether each attempt is compared with the server's counts, which takes one call at a time.
        settings: besides the defaults of the tests.
    """
    prices = folder / "prices.toml"
    prices.write_text(PRICES)
    given = {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "none",
        "POSOLOGY_PRICES": str(prices),
        "POSOLOGY_CONCURRENCY": "1",
    }
    with pytest.MonkeyPatch.context() as environment:
        for name, value in (given | settings).items():
            environment.setenv(name, value)
        connections = Connections(load_settings(), offline=_no_reader)
    account, ledger = Account(), MemoryLedger()
    journal = LedgerJournal(ledger, account)
    complete = connections.complete(MODEL, Watched(journal, server) if each else journal)
    try:
        yield Rig(
            server=server,
            complete=complete,
            account=account,
            ledger=ledger,
            before=server.counts(),
        )
    finally:
        await connections.aclose()


def _no_reader() -> Send:
    raise AssertionError("no offline model is asked")


def a_task(query: Query, passages: int, *, words: int = 12, max_tokens: int = 1_000) -> Task:
    texts = (
        f"Drug {i} was given to {i + 20} patients at noon, and the outcome was better{' again' * words}."
        for i in range(passages)
    )
    found = [Passage(id=f"n:{i}", text=text) for i, text in enumerate(texts)]
    retrieval = retrieval_of(query, found)
    return Task(query=query, retrieval=retrieval, model=MODEL, max_tokens=max_tokens)


def a_call(text: str, stage: Stage, schema: type[BaseModel] | None, max_tokens: int) -> Call:
    """A short prompt, so that a reply is what takes the time."""
    call = Direct().call(a_task(make_query("Is it?"), 1))
    assert call is not None
    message = Message(role=Role.USER, content=text)
    return replace(call, messages=(message,), schema=schema, stage=stage, max_tokens=max_tokens)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_reply_has_the_form_that_was_asked_for_whatever_the_weights(
    seed: int, folder: Path
) -> None:
    """No repair, and no label or choice that was not shown: the server's grammar leaves no room for one."""
    write_model(folder / f"{seed}.gguf", seed=seed)
    with serving(folder / f"{seed}.gguf", window=WINDOW) as server:
        async with rigged(server, folder, each=True) as rig:
            for i in range(3):
                for stage, schema in SCHEMAS:
                    call = a_call(f"Does it work {i}?", stage, schema, 3_000)
                    completion = await rig.complete(call)
                    assert completion.finish is Finish.STOP
                    assert isinstance(completion.parsed, schema)
                    narrow = Draft202012Validator(response_schema(schema).schema)
                    narrow.validate(completion.parsed.model_dump(by_alias=True, exclude_unset=True))
            assert {one.outcome for one in rig.account.attempts} == {Outcome.OK}
            assert len(rig.account.attempts) == 3 * len(SCHEMAS)
            rig.check_books()


async def test_a_prompt_beyond_the_window_is_told_as_such(server: Llama, folder: Path) -> None:
    async with rigged(server, folder, each=True) as rig:
        task = a_task(make_query("Which drug is it?"), 8, words=3 * LONG)
        with pytest.raises(ContextTooLong, match="use fewer or shorter passages") as caught:
            await Direct()(task, rig.complete)
        assert f"{WINDOW} tokens" in str(caught.value)
        # asked once, and nothing is charged
        (attempt,) = rig.account.attempts
        assert attempt.cost == 0
        rig.check_books()


async def test_a_reply_that_fills_the_window_is_told_as_such(server: Llama, folder: Path) -> None:
    async with rigged(server, folder, each=True) as rig:

        async def prompt_tokens(words: int) -> int:
            completion = await rig.complete(a_call("word " * words, Stage.ANSWER, None, 1))
            assert completion.usage is not None
            return completion.usage.total_input

        one, two = await prompt_tokens(1), await prompt_tokens(2)
        words = 1 + (WINDOW - 12 - one) // (two - one)
        stage, schema = SCHEMAS[0]
        with pytest.raises(ContextTooLong, match="window was full: use fewer or shorter passages"):
            await rig.complete(a_call("word " * words, stage, schema, 500))
        last = rig.account.attempts[-1]
        assert last.usage is not None
        assert last.usage.total_input + last.usage.total_output == WINDOW
        rig.check_books()


async def test_a_ladder_ends_at_the_window_with_what_it_has(server: Llama, folder: Path) -> None:
    query = make_query("Which drug is it?")
    async with rigged(server, folder, each=True) as rig:
        ladder = Ladder(Direct(), rungs=(2, 4, 8))
        outcome = await ladder(a_task(query, 8, words=LONG), rig.complete)
        assert isinstance(outcome, Answer | Refusal)
        # no quote of a random model stands, so each step leads to the next
        assert [rung.passages for rung in outcome.rungs] == [2, 4]
        assert (
            "The ladder ended there because of the model's window (ContextTooLong)."
            in outcome.notes
        )
        assert [one.error for one in rig.account.attempts] == [None, None, "ContextTooLong"]
        rig.check_books()


@pytest.mark.parametrize(("stage", "schema"), SCHEMAS)
async def test_a_cut_reply_is_truncated_and_paid(
    stage: Stage, schema: type[BaseModel], server: Llama, folder: Path
) -> None:
    async with rigged(server, folder, each=True) as rig:
        with pytest.raises(TruncatedReply, match="truncated at 8 output tokens"):
            await rig.complete(a_call("Does it work?", stage, schema, 8))
        (attempt,) = rig.account.attempts
        assert (attempt.outcome, attempt.error) == (Outcome.UNUSABLE, "TruncatedReply")
        rig.check_books()


async def test_bytes_that_are_no_text_are_an_unusable_reply(folder: Path) -> None:
    """The server answers 500 when it cannot read what its model wrote; at temperature 0 it would write it again."""
    write_model(folder / "bytes.gguf", seed=3, any_bytes=True)
    with serving(folder / "bytes.gguf", window=WINDOW) as server:
        async with rigged(server, folder) as rig:
            found: Counter[str] = Counter()
            for i in range(20):
                try:
                    await rig.complete(a_call(f"Does it work {i}?", *SCHEMAS[0], 3_000))
                except UnusableReply as error:
                    advised = "use another model" in str(error)
                    found["advised" if advised else str(error)] += 1
            assert set(found) == {"advised"}
            # none is made twice, but for a repair of a reply that was read, and after a connection that the server closed while it
            # was used; what the server does not tell the tokens of is charged at its bound
            by_call = {
                (one.call, one.attempt): one
                for one in rig.account.attempts
                if one.error != "ProviderUnreachable"
            }
            again = [(call, attempt - 1) for call, attempt in by_call if attempt > 1]
            assert [one for one in again if one in by_call and by_call[one].usage is None] == []
            assert sum(one.cost is None for one in by_call.values()) == found["advised"]


async def test_a_stream_is_the_reply_as_a_whole_and_says_how_far_it_is(server: Llama) -> None:
    """Temperature 0 writes the same text again; the server counts the prompt before it writes."""
    call = a_call("Does it work?", *SCHEMAS[0], 300)
    told: list[ReplyProgress] = []
    found = []
    for stream in (True, False):
        adapter = OpenAIAdapter(
            api_key="none",
            base_url=server.base_url,
            min_tokens_per_second=LOCAL,
            stream=stream,
        )
        found.append(await adapter.telling(lambda _, now: told.append(now))(call))
        await adapter.aclose()
    streamed, whole = found
    assert (streamed.text, streamed.finish) == (whole.text, whole.finish)
    assert streamed.usage is not None
    assert whole.usage is not None
    # the second time, the server has the prompt in its cache
    assert streamed.usage.total_input == whole.usage.total_input == told[-1].prompt
    assert streamed.usage.total_output == whole.usage.total_output
    reading = [now.read for now in told if not now.written]
    assert reading[-1] == told[-1].prompt
    assert told[-1].written > 0


async def a_run(rig: Rig, questions: int) -> Counter[str]:
    """Ask many questions in each form, by each strategy, with windows that overflow; only typed errors are caught."""
    strategies: list[Strategy] = [
        Direct(),
        Ladder(Direct(), rungs=(2, 4, 8)),
        BriefContext(size=3),
    ]
    ended: Counter[str] = Counter()
    for i in range(questions):
        text = f"Which of {i + 2} drugs was given at noon?"
        query = make_query(text, form=FORMS[i % len(FORMS)])
        words = LONG if i % 5 == 4 else 12
        task = a_task(query, 4 + i % 5, words=words, max_tokens=1_500)
        try:
            outcome = await strategies[i // 2 % len(strategies)](task, rig.complete)
            ended[type(outcome).__name__] += 1
        except (ContextTooLong, TruncatedReply, NothingRead) as error:
            ended[type(error).__name__] += 1
    return ended


async def test_questions_end_typed_and_are_accounted_for(server: Llama, folder: Path) -> None:
    async with rigged(server, folder, each=True) as rig:
        ended = await a_run(rig, 20)
        assert ended["Refusal"] + ended["Answer"] >= 10
        assert ended.total() == 20
        assert {one.error for one in rig.account.attempts} >= {None, "ContextTooLong"}
        rig.check_books()
