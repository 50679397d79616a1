"""Two policies beside each other, over questions whose rankings agree or do not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from io import StringIO
from typing import TYPE_CHECKING, cast

import pytest
from rich.console import Console

from orchestrator.cli.policy.replay_view import show_compare
from orchestrator.question.decider import Decider
from orchestrator.question.decisions.comparison import Comparison, Side
from orchestrator.question.decisions.forms import CompareOutput
from orchestrator.question.estimates.costs import Estimator
from orchestrator.question.estimates.rows import read_rows
from orchestrator.question.estimates.tokens import Counting
from orchestrator.question.estimates.typical import Typical
from orchestrator.question.request import Request
from orchestrator.settings import Settings
from policies.qtable import QTable
from posology.errors import InvalidQuery
from posology.query import make_query
from posology.testing.prices import FlatPrices, by_bytes
from posology.types import DECLINE
from tests.support.situations import Library
from tests.unit.policies.tables import table

if TYPE_CHECKING:
    from orchestrator.service import Service

pytestmark = pytest.mark.anyio


#: what it sees is plain from two rankings
PREFLIGHT = "preflight:preflight=published"


def characters(text: str) -> int:
    return len(text)


ESTIMATOR = Estimator(
    prices=FlatPrices(token=Decimal("0.0001")),
    bound=by_bytes,
    counting=Counting(characters),
    typical=Typical(),
)
ROWS = [
    json.dumps({"question": f"Does it help? {kind} {turn}", "model": "openai:x", "max_tokens": 300})
    for turn in range(3)
    for kind in ("agree", "apart")
]


async def compared(
    first: str,
    second: str,
    *,
    rows: Sequence[str] = ROWS,
    left: str | None = None,
    of: QTable | None = None,
    show: int = 20,
) -> CompareOutput:
    settings = Settings()
    comparison = Comparison(
        service=cast("Service", Library()),
        decider=Decider(table=of, estimator=ESTIMATOR),
        estimator=ESTIMATOR,
        settings=settings,
        left=None if left is None else Decimal(left),
    )
    read = list(read_rows(rows, {}, settings))
    return await comparison(Side.parse(first), Side.parse(second), read, show=show)


async def test_a_policy_does_not_differ_from_itself() -> None:
    out = await compared("router", "router:doubling=on", of=table())
    assert out.questions == len(ROWS)
    assert out.differing == 0
    assert not out.differences
    assert out.first.version == out.second.version
    assert out.first.expected_usd == out.second.expected_usd > 0
    assert out.index == "library@1"


async def test_where_they_differ_is_counted_told_and_summed() -> None:
    out = await compared(PREFLIGHT, "direct")
    assert out.differing == 3
    assert {(pair.first, pair.second): pair.questions for pair in out.doses} == {
        ("briefcontext", "direct"): 3,
        ("direct", "direct"): 3,
    }
    assert [one.row for one in out.differences] == [1, 3, 5]
    assert all("apart" in one.question for one in out.differences)
    assert all("IoU" in one.first_reason for one in out.differences)
    assert out.first.differing_expected_usd > out.second.differing_expected_usd
    # on the others they agree, and so cost the same
    assert (
        out.first.expected_usd - out.first.differing_expected_usd
        == out.second.expected_usd - out.second.differing_expected_usd
    )
    assert sum((one.first_expected_usd for one in out.differences), Decimal(0)) == (
        out.first.differing_expected_usd
    )
    assert out.first.low_usd <= out.first.expected_usd <= out.first.worst_usd
    assert out.first.calls > out.second.calls == len(ROWS)
    short = await compared(PREFLIGHT, "direct", show=1)
    assert len(short.differences) == 1
    assert short.differing == 3


async def test_under_a_limit_the_dearer_steps_down_or_declines() -> None:
    free = await compared(PREFLIGHT, "affordable")
    dear = await compared(PREFLIGHT, "affordable", left="1")
    assert free.first.declined == dear.first.declined == 0
    assert free.first.worst_usd > dear.first.worst_usd
    assert dear.left_usd == 1
    none = await compared(PREFLIGHT, "affordable", left="0.001")
    assert none.first.declined == none.second.declined == len(ROWS)
    assert none.first.expected_usd == none.first.worst_usd == 0
    assert none.doses[0].first == DECLINE


async def test_what_a_row_asks_for_itself_does_not_count() -> None:
    forced = [json.dumps(json.loads(row) | {"strategy": "briefcontext"}) for row in ROWS]
    out = await compared("direct", "compressed:keep=0.2", rows=forced)
    assert {(p.first, p.second) for p in out.doses} == {
        ("direct", "compressed keeping 20% of the sentences")
    }


async def test_a_bad_row_is_told_and_the_others_go_on() -> None:
    rows = [*ROWS, '{"question": ""}', "no JSON"]
    out = await compared("direct", "briefcontext", rows=rows)
    assert out.questions == len(ROWS)
    assert [bad.row for bad in out.bad] == [6, 7]


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "direct:keep=0.2",
        "direct:compressor=leancontext",
        "compressed:keep=2",
        "compressed:share=1",
        "compressed:compressor=magic",
        "compressed:compressor=",
        "router:x=1",
        "router:compressor=magic",
    ],
)
def test_what_is_no_side_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery):
        Side.parse(text)


def test_a_side_names_its_compressor() -> None:
    side = Side.parse("compressed:compressor=top+selective_context,keep=0.2")
    assert (side.strategy, side.keep, side.compressor) == (
        "compressed",
        0.2,
        "top+selective_context",
    )
    asked = Request(query=make_query("Why?"), model="openai:x", compressor="leancontext_top")
    assert side.of(asked).compressor == "top+selective_context"
    assert Side.parse("compressed").of(asked).compressor == "leancontext_top"
    assert Side.parse("router").of(asked).compressor == "leancontext_top"
    assert Side.parse("direct").of(asked).compressor is None


async def test_it_is_told_in_a_terminal() -> None:
    rows = [*ROWS, json.dumps({"question": "Is it \x1b[31m apart?", "model": "openai:x"})]
    console = Console(file=StringIO(), width=140)
    show_compare(console, await compared(PREFLIGHT, "direct", rows=rows, show=3))
    told = cast("StringIO", console.file).getvalue()
    assert "7 questions, 4 with different doses" in told
    assert "--show 4" in told
    assert "IoU" in told
    assert "\x1b" not in told
