"""At 80 columns no view cuts a figure, whatever its size; in a pipe a table has neither borders nor a width."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import types
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from orchestrator.cli.index.forms import IndexOutput, VersionsOutput
from orchestrator.cli.index.view import show_versions
from orchestrator.cli.jobs.view import show_batches, show_jobs
from orchestrator.cli.money.estimate_view import show_estimate
from orchestrator.cli.money.ledger_view import show_spend, spend_csv
from orchestrator.cli.money.reconcile_view import reconcile_csv, show_reconcile
from orchestrator.cli.money.tenants_view import show_tenant, show_tenants
from orchestrator.cli.output.tables import print_form, print_table
from orchestrator.cli.policy.replay_view import show_compare
from orchestrator.cli.policy.table_view import show_promotion, show_training
from orchestrator.cli.terminal import show_index, show_search
from orchestrator.question.decisions.forms import CompareOutput
from orchestrator.rendering.forms.columns import table_of
from orchestrator.training.forms import PromotionOutput, TrainOutput
from posology.budget.reconcile.report import ReconcileOutput
from posology.budget.tenants.store import Tenant
from posology.published.estimates import EstimateOutput
from posology.published.jobs import BatchPage, JobPage
from posology.published.literature import SearchOutput
from posology.published.money import SpendOutput
from posology.types import Balance

#: figures that are larger than any installation will have
COUNT, AMOUNT = 987_654_321_098, Decimal("98765432.109876")
#: a name as long as a provider's
NAME = "openai:gpt-4o-mini-2024-07-18"


def filled(kind: Any) -> Any:
    """Return a value of a type, every optional part present and every number large."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return filled(args[0])
    if origin in (Union, types.UnionType):
        return filled(next(arg for arg in args if arg is not type(None)))
    if origin is Literal:
        return args[0]
    if origin in (tuple, list):
        return (
            (filled(args[0]), filled(args[0])) if args[-1] is Ellipsis else tuple(map(filled, args))
        )
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return {filled(args[0]): filled(args[1])}
    make: Any = kind
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        return make(**{f.name: filled(hints[f.name]) for f in dataclasses.fields(kind) if f.init})
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        return kind.model_construct(**{name: filled(field.annotation) for name, field in fields})
    if isinstance(kind, type) and issubclass(kind, Enum):
        # the last verdict is drift, which is shown in full
        return list(kind)[-1]
    values: dict[Any, Any] = {
        int: COUNT, float: 0.987654321, bool: True, str: NAME, Decimal: AMOUNT, type(None): None,
        date: date(2026, 1, 15), datetime: datetime(2026, 1, 15, 12, tzinfo=UTC), Any: NAME,
        object: NAME,
    }  # fmt: skip
    return values[kind]


def seen(show: Callable[[Console], None], *, terminal: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=terminal, color_system=None)
    show(console)
    return re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())


def tenant(console: Console) -> None:
    show_tenant(console, filled(Tenant), (filled(Balance),))


def jobs(console: Console) -> None:
    # of a question, the beginning is enough
    told = filled(JobPage).jobs
    show_jobs(console, [job.model_copy(update={"question": "Does it help? " * 9}) for job in told])


VIEWS: dict[str, Callable[[Console], None]] = {
    "reconcile": lambda console: show_reconcile(console, filled(ReconcileOutput)),
    "spend": lambda console: show_spend(console, filled(SpendOutput)),
    "estimate": lambda console: show_estimate(console, filled(EstimateOutput)),
    "tenant": tenant,
    "tenants": lambda console: show_tenants(console, (filled(Tenant),)),
    "jobs": jobs,
    "batches": lambda console: show_batches(console, filled(BatchPage).batches),
    "versions": lambda console: show_versions(console, filled(VersionsOutput)),
    "index": lambda console: show_index(console, filled(IndexOutput)),
    "search": lambda console: show_search(console, filled(SearchOutput)),
    "compare": lambda console: show_compare(console, filled(CompareOutput)),
    "training": lambda console: show_training(console, filled(TrainOutput)),
    "promotion": lambda console: show_promotion(console, filled(PromotionOutput)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_no_figure_is_cut_at_80_columns(name: str) -> None:
    narrow, piped = (seen(VIEWS[name], terminal=terminal) for terminal in (True, False))
    assert not re.search(r"[\d,.$%]…", narrow), narrow
    assert not set("│┃─━┏╭") & set(piped), piped
    # every figure of the pipe, which has no width, stands in the terminal whole
    figures = set(re.findall(r"\$?\d[\d,]*(?:\.\d+)?", piped))
    assert figures
    assert not {figure for figure in figures if figure not in narrow.replace("\n", "")}


def test_a_table_that_fits_stays_a_table() -> None:
    table = table_of("day, attempts", [("2026-05-01", 1_000)], title="May")
    assert seen(lambda c: print_form(c, table), terminal=True).splitlines()[1].split() == [
        "day",
        "attempts",
    ]


def test_a_table_that_does_not_fit_becomes_records() -> None:
    table = Table(title="all")
    for name in ("model", "cost", "note"):
        table.add_column(name, no_wrap=True)
    table.add_row("a" * 50, "1" * 50, "")
    table.add_row("b" * 50, "2" * 50, "late")
    lines = [
        line.rstrip() for line in seen(lambda c: print_table(c, table), terminal=True).splitlines()
    ]
    assert lines == [
        "all",
        f"model  {'a' * 50}",
        f"  cost  {'1' * 50}",
        f"model  {'b' * 50}",
        f"  cost  {'2' * 50}",
        "  note  late",
    ]
    piped = seen(lambda c: print_table(c, table), terminal=False)
    assert [line.split() for line in piped.splitlines()][2] == ["a" * 50, "1" * 50]


def test_spend_as_csv(capsys: pytest.CaptureFixture[str]) -> None:
    spend_csv(filled(SpendOutput))
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 2
    assert rows[0][str(filled(SpendOutput).by)] == NAME
    assert (rows[0]["attempts"], rows[0]["charged_usd"]) == (str(COUNT), str(AMOUNT))


def test_reconcile_as_csv(capsys: pytest.CaptureFixture[str]) -> None:
    out = filled(ReconcileOutput)
    reconcile_csv(out)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == sum(len(group.compared) for group in (*out.groups, *out.totals))
    assert rows[0]["model"] == NAME
    assert Decimal(rows[0]["theirs"]) == COUNT
