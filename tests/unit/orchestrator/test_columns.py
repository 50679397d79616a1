"""One declaration of columns for every door: titles, texts, and what a terminal and a page make of them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from rich.console import Console

from orchestrator.cli.output.tables import print_facts, print_form
from orchestrator.console.pages import part
from orchestrator.rendering.forms.columns import (
    Cell,
    Column,
    Kind,
    Table,
    Tone,
    Value,
    cell,
    facts,
    share,
    table,
    table_of,
)
from orchestrator.rendering.forms.money import balances, spending
from posology.published.money import Amounts, BalanceOutput, SpendGroup, SpendOutput
from posology.types import Grouping
from posology.types.money import Scope

NOON = datetime(2026, 1, 15, 13, 0, 5, tzinfo=timezone(timedelta(hours=1)))
HOSTILE = '<b>"x"</b>\x1b[31m\u202e'


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    name: str
    count: int | None
    at: datetime | None = None


COLUMNS: tuple[Column[Item], ...] = (
    Column("name", lambda item: Cell(text=item.name, page="/items/1", note="new")),
    Column("count", lambda item: item.count, Kind.NUMBER, "no limit"),
    Column("at", lambda item: item.at, Kind.TIME),
    Column("part", lambda item: share((item.count or 0) / 2_000), Kind.BAR),
)


def terminal(form: Table) -> str:
    console = Console(file=io.StringIO(), width=120)
    print_form(console, form)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def page(form: Table, empty: str = "") -> str:
    """The table of a form as the console's macro makes it."""
    from orchestrator.console.pages import _environment

    text = "{{ m.table(form, 'Items', empty=empty) }}"
    return _environment().from_string(text).render(form=form, empty=empty)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"), (True, "yes"), (1_234, "1,234"), (Decimal("0.001"), "$0.001000"), (Decimal(1_234), "$1,234.0000"),
        (Decimal("-0.5"), "−$0.5000"), (NOON, "2026-01-15 12:00"), (Scope.DAY, "day"), ("x", "x"),
    ],
)  # fmt: skip
def test_the_type_of_a_value_decides_its_text(value: Value, shown: str) -> None:
    assert cell(value).text == shown


def test_both_doors_show_the_same_columns() -> None:
    form = table(COLUMNS, [Item(name="a", count=1_000, at=NOON)], "count, name, at, part")
    lines = terminal(form).splitlines()
    assert lines[0].split() == ["count", "name", "at", "(UTC)", "part"]
    assert lines[1].split() == ["1,000", "a", "new", "2026-01-15", "12:00", "█" * 15]
    text = page(form)
    heads = ['<th scope="col" class="number">Count</th>', '<th scope="col">Name</th>']
    assert all(head in text for head in heads)
    assert '<td class="number">1,000</td>' in text
    assert '<a href="/console/items/1">a</a> <span class="soft">new</span>' in text
    assert '<time datetime="2026-01-15T12:00:05+00:00">2026-01-15 12:00:05</time>' in text
    assert 'width="50.0"' in text


def test_no_text_is_obeyed() -> None:
    form = table_of("name, note", [(HOSTILE, Cell(text=HOSTILE, tone=Tone.BAD, note=HOSTILE))])
    text = page(form)
    assert "<b>" not in text
    assert text.count("&lt;b&gt;&#34;x&#34;&lt;/b&gt;[31m") == 3
    for shown in (text, terminal(form)):
        assert not {"\x1b", "\u202e"} & set(shown)


def test_where_there_is_no_value() -> None:
    form = table(COLUMNS, [Item(name="a", count=None)], "count, at")
    assert [one.text for one in form.lines[0].cells] == ["no limit", "–"]
    # a fact without a value is left out, unless the form has words for that
    assert [name for name, _ in facts(COLUMNS, Item(name="a", count=None), "name, count, at")] == [
        "name",
        "count",
    ]
    nothing = table(COLUMNS, [])
    assert page(nothing, "None here.").strip() == '<p class="empty">None here.</p>'


def test_facts_have_seconds_and_their_zone() -> None:
    console = Console(file=io.StringIO(), width=80)
    print_facts(console, facts(COLUMNS, Item(name="a", count=7, at=NOON), "count, at"), title="it")
    assert isinstance(console.file, io.StringIO)
    assert [line.split() for line in console.file.getvalue().splitlines()] == [
        ["it"], ["count", "7"], ["at", "2026-01-15", "12:00:05", "UTC"],
    ]  # fmt: skip


def test_a_column_that_a_form_lacks_is_an_error() -> None:
    with pytest.raises(KeyError):
        table(COLUMNS, [], "name, price")


def test_spending_has_a_total_with_all_columns_and_bars_for_some() -> None:
    amounts: dict[str, Any] = {
        "attempts": 2,
        "at_bounds_usd": Decimal(0),
        "unknown_costs": 0,
        "input_tokens": 9,
        "output_tokens": 1,
    }
    groups = [SpendGroup(name=name, charged_usd=Decimal(n), **amounts) for name, n in (("a", 4), ("b", 1))]  # fmt: skip
    out = SpendOutput(
        tenant="acme", by=Grouping.MODEL, since=NOON.date(), until=NOON.date(), groups=tuple(groups), balances=(),
        total=Amounts(charged_usd=Decimal(5), **amounts),
    )  # fmt: skip
    assert terminal(spending(out)).splitlines()[-1].split()[:3] == ["total", "2", "$5.0000"]
    some = spending(out, "model, share, charged")
    assert some.total is None
    assert [line.cells[1].bar for line in some.lines] == [1.0, 0.25]


def test_budgets_of_several_tenants_are_named() -> None:
    rows = [
        BalanceOutput(
            tenant=name, scope=Scope.DAY, cap_usd=None, spent_usd=Decimal(0), reserved_usd=Decimal(0),
            left_usd=None, resets=datetime(2026, 1, 16, tzinfo=UTC),
        )
        for name in ("a", "b")
    ]  # fmt: skip
    assert balances(rows).lines[0].cells[0].text == "a day"
    assert balances(rows[:1]).lines[0].cells[0].text == "day"


def test_a_step_of_a_job_is_a_value() -> None:
    line = part("step.html", step=Cell(text=HOSTILE, at=NOON, tone=Tone.BAD))
    assert line.startswith('<li class="bad"><time')
    assert "<b>" not in line
