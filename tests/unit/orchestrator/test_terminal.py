from __future__ import annotations

import io
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from orchestrator.cli.terminal import show_answer
from orchestrator.rendering.words import calls, money, safe, size
from posology.published.answers import AskOutput, Disagreement, Position, Source
from posology.published.calls import AttemptOutput
from posology.types import Coverage, Level, Outcome, PromptId, Resolution, Stage
from tests.support.answers import NOTHING_SPENT, an_answer


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\x1b[31mred", "a[31mred"),
        ("a\x9b31m", "a31m"),
        ("title\x07\x08", "title"),
        ("5\u202e gm 52", "5 gm 52"),
        ("one\ntwo\tthree", "one\ntwo\tthree"),
        ("µg ≥ β é 漢", "µg ≥ β é 漢"),
        ("lone \ud800", "lone "),
        ("a\u200bb\u200fc\U000e0041d\ufeff", "abcd"),
        ("one\u2028two\u2029three", "one two three"),
    ],
)
def test_what_a_terminal_would_obey_is_left_out(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text())
def test_safe_text_has_no_control_characters_and_loses_nothing_else(text: str) -> None:
    shown = safe(text)
    assert not any(ord(c) < 32 and c not in "\n\t" for c in shown)
    assert "\x1b" not in shown
    assert [c for c in shown if c.isalnum()] == [c for c in text if c.isalnum()]


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (None, "unknown"),
        (Decimal(0), "$0"),
        (Decimal("0.00012345"), "$0.000123"),
        (Decimal("1.5"), "$1.5000"),
    ],
)
def test_money(cost: Decimal | None, shown: str) -> None:
    assert money(cost) == shown


def shown(out: AskOutput) -> str:
    console = Console(file=io.StringIO(), width=160, force_terminal=False)
    show_answer(console, out)
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().replace("│", " ").split())


def attempt(call: int) -> AttemptOutput:
    return AttemptOutput(
        id="a", call=call, attempt=1, stage=Stage.ANSWER, model="openai:x",
        prompt=PromptId(name="direct", digest="0"), outcome=Outcome.OK, error=None,
        usage=None, cost=None, started=0.0, latency=0.0, request_id=None,
    )  # fmt: skip


def source(name: str, *, year: int | None, retracted: bool = False) -> Source:
    return Source(
        id=name, pmid=None, title=f"{name} \x1b[31mtitle", journal=None, year=year,
        publication_types=(), retracted=retracted, source=None,
    )  # fmt: skip


def answer(resolution: Resolution) -> AskOutput:
    young = Position(passage=source("a", year=2020), level=Level.TRIAL, quotes=("It \x07did.",))
    old = Position(
        passage=source("b", year=None, retracted=True),
        level=Level.CASE_REPORT,
        quotes=("It [bold]did not.",),
    )
    return an_answer(
        conflicts=(
            Disagreement(
                claim="It \x1b[31mhelps.",
                supporting=(young,),
                opposing=(old,),
                resolution=resolution,
                how="a trial carries further",
            ),
        ),
        coverage=Coverage(partitions=5, found=2, empty=2, failed=1, calls=6),
        strategy="briefcontext",
    )


def test_a_contradiction_is_shown_with_both_sides_and_what_became_of_it() -> None:
    text = shown(answer(Resolution.SUPPORTING))
    assert "\x1b" not in text
    assert "\x07" not in text
    for part in (
        "Sources disagree: It [31mhelps.",
        "for trial: a [31mtitle (2020)",
        "“It did.”",
        "against case report: b [31mtitle RETRACTED",
        "“It [bold]did not.”",
        "the supporting side: a trial carries further",
    ):
        assert part in text
    assert "unresolved: a trial" in shown(answer(Resolution.UNRESOLVED))
    assert "5 partitions: 2 with findings, 2 without relevant passages, 1 failed" in text
    assert "6 calls" not in text, "calls are counted in the account"


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        ((), "0 calls"),
        ((1,), "1 call"),
        ((1, 2, 3), "3 calls"),
        ((1, 1, 2), "2 calls in 3 attempts"),
        ((1, 1), "1 call in 2 attempts"),
    ],
)
def test_a_repeated_call_counts_once(made: tuple[int, ...], shown: str) -> None:
    attempts = tuple(attempt(call) for call in made)
    spent = NOTHING_SPENT.model_copy(update={"attempts": attempts})
    assert calls(spent) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (58_123, "58 kB"),
        (999_600, "1.0 MB"),
        (1_240_000_000, "1.2 GB"),
    ],
)
def test_sizes_have_two_figures_or_more(count: int, shown: str) -> None:
    assert size(count) == shown
