"""A new provider is its adapter and one row of the table, as CONTRIBUTING.md says."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from orchestrator.connections import Connections
from orchestrator.settings import load_settings
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.memory import MemoryLedger
from posology.errors import BudgetExhausted, MissingKey, ProviderOverloaded, UnknownModel
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.llm.models.names import model_forms, parse
from posology.llm.providers.table import PROVIDERS, Provider, ProviderOptions
from posology.query import make_query
from posology.types import Answer, Call, Completion, Finish, Outcome, Passage, Usage
from prompts.answer import AnswerReply
from strategies.direct import Direct
from tests.support.tasks import task_of

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
MODEL = "toy:parrot-1"
PRICES = """
[models."toy:parrot-1"]
input = "2.00"
output = "10.00"
"""
NOTE = Passage(id="note:1", title="Aspirin", text="Aspirin 300 mg is given at once. It helps.")
REPLY = AnswerReply.model_validate(
    {
        "answerable": True,
        "answer": "300 mg at once.",
        "choice": None,
        "quotes": [{"passage": "P1", "quote": "Aspirin 300 mg is given at once."}],
    }
)


class ToyAdapter:
    """An adapter: sends one call, and raises only ``ProviderError``s. This one fails the first time."""

    def __init__(self, options: ProviderOptions) -> None:
        if not options.api_key:
            raise MissingKey(variable="TOY_API_KEY")
        self.options = options
        self.calls: list[Call] = []
        self.attempt_ids: list[str | None] = []
        self.closed = False

    async def __call__(self, call: Call, *, attempt_id: str | None = None) -> Completion:
        self.calls.append(call)
        self.attempt_ids.append(attempt_id)
        if len(self.calls) == 1:
            raise ProviderOverloaded("busy", provider="toy", model=call.model, usage=Usage())
        return Completion(
            text=REPLY.model_dump_json(),
            usage=Usage(input=1_000, output=100),
            finish=Finish.STOP,
            served_model="parrot-1-2026",
            latency=0.01,
        )

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[ToyAdapter]:
    """The row of the table, and what a user sets: the key, the address and the price."""
    made: list[ToyAdapter] = []

    def connect(options: ProviderOptions) -> ToyAdapter:
        made.append(ToyAdapter(options))
        return made[-1]

    row = Provider(
        name="toy",
        title="A toy",
        connect=connect,
        key_variable="TOY_API_KEY",
        url_variable="TOY_BASE_URL",
        schema_tokens=10,
    )
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES, encoding="utf-8")
    monkeypatch.setitem(PROVIDERS, row.name, row)
    monkeypatch.setenv("TOY_API_KEY", "sk-toy")
    monkeypatch.setenv("TOY_BASE_URL", "https://toy.example")
    monkeypatch.setenv("POSOLOGY_PRICES", str(prices))
    return made


async def at_once(_seconds: float) -> None:
    """Wait for nothing."""


def connections() -> Connections:
    def no_reader() -> ToyAdapter:
        raise AssertionError("the offline reader was asked for")

    return Connections(load_settings(), offline=no_reader)


def test_the_guide_names_the_adapter_and_the_table_alone() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| a provider \|(.*)\|(.*)\|$", guide, re.MULTILINE)
    assert "posology/llm/providers/NAME.py" in row[0]
    assert re.findall(r"`(posology/\S+\.py)`", row[1]) == ["posology/llm/providers/table.py"]


@pytest.mark.usefixtures("adapters")
def test_its_models_have_names() -> None:
    assert parse(MODEL).name == "parrot-1"
    assert "toy:NAME" in model_forms()


def test_without_its_row_it_is_unknown() -> None:
    with pytest.raises(UnknownModel):
        parse(MODEL)


async def test_it_answers_a_question_and_its_attempts_are_settled(
    adapters: list[ToyAdapter],
) -> None:
    opened, account = connections(), Account()
    ledger = MemoryLedger(tenant="acme")
    task = task_of(make_query("What dose of aspirin?"), [NOTE], model=MODEL)
    outcome = await Direct()(
        task, opened.complete(MODEL, LedgerJournal(ledger, account), Caller(sleep=at_once))
    )
    await opened.aclose()

    assert isinstance(outcome, Answer)
    assert [citation.quote for citation in outcome.citations] == [
        "Aspirin 300 mg is given at once."
    ]
    (adapter,) = adapters
    assert (adapter.options.api_key, adapter.options.base_url) == ("sk-toy", "https://toy.example")
    assert adapter.closed
    failed, answered = account.attempts
    assert (failed.outcome, failed.cost) == (Outcome.FAILED, Decimal(0))
    assert (answered.outcome, answered.cost) == (Outcome.OK, Decimal("0.003"))
    assert answered.reserved is not None
    assert answered.reserved > Decimal("0.003")
    assert adapter.attempt_ids == [failed.id, answered.id]
    kinds = [entry["kind"] for entry in ledger.entries]
    assert kinds == ["reserve", "settle", "reserve", "settle"]
    assert account.charged == Decimal("0.003")


async def test_a_call_that_its_limit_does_not_allow_is_not_sent(adapters: list[ToyAdapter]) -> None:
    opened = connections()
    journal = LedgerJournal(MemoryLedger(tenant="acme"), Account(), cap=Decimal("0.000001"))
    task = task_of(make_query("What dose of aspirin?"), [NOTE], model=MODEL)
    with pytest.raises(BudgetExhausted):
        await Direct()(task, opened.complete(MODEL, journal))
    assert not adapters[0].calls


async def test_a_missing_key_names_its_variable(
    adapters: list[ToyAdapter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOY_API_KEY")
    with pytest.raises(MissingKey) as caught:
        connections().complete(MODEL, Account())
    assert caught.value.variable == "TOY_API_KEY"
    assert not adapters
