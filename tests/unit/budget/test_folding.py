from __future__ import annotations

from collections import Counter

from posology.budget.books.reader import Entry
from posology.budget.books.sums import Fold

MORE = {
    "stage": "answer", "strategy": "direct", "model": "openai:x", "label": "other", "input": "0",
    "output": "0", "entry": "{}",
}  # fmt: skip
LABELS = "|answer|direct|other"


def entry(place: int, kind: str, reserved: int, spent: int, **more: object) -> Entry:
    fields = {"kind": kind, "id": "a", "at": "1", "job": "job_1", "day": "2026-01-31",
              "reserved": str(reserved), "spent": str(spent)}  # fmt: skip
    if kind != "reserve":
        fields |= {**MORE, "outcome": kind, **{name: str(value) for name, value in more.items()}}
    return Entry(place=f"{place}-0", fields=fields)


def fold(*entries: Entry) -> Fold:
    made = Fold()
    for one in entries:
        made.add(one)
    return made


def nonzero(found: Counter[str]) -> dict[str, int]:
    return {name: n for name, n in found.items() if n}


RESERVED = entry(1, "reserve", 100, 0)
LOST = entry(2, "lose", -100, 100, bound=100, charged=100, known=0)


def test_what_is_reserved_counts_in_every_window() -> None:
    made = fold(RESERVED)
    assert nonzero(made.money) == {
        "reserved:day:2026-01-31": 100, "reserved:month:2026-01": 100, "reserved:total": 100
    }  # fmt: skip
    assert made.jobs["job_1"] == {"reserved_nano": 100, "spent_nano": 0}
    assert made.open == {"a": 100}
    assert made.days == {}
    assert (made.place, made.entries) == ("1-0", 1)


def test_what_is_settled_frees_what_was_reserved() -> None:
    settled = entry(2, "settle", -100, 120, bound=100, charged=120, known=1, input=7, output=3)
    made = fold(RESERVED, settled)
    assert nonzero(made.money) == {
        "spent:day:2026-01-31": 120, "spent:month:2026-01": 120, "spent:total": 120, "over": 1
    }  # fmt: skip
    assert made.open == {}
    assert nonzero(made.days["2026-01-31"]) == {
        f"attempts{LABELS}": 1, f"nano{LABELS}": 120, f"input{LABELS}": 7, f"output{LABELS}": 3
    }  # fmt: skip


def test_what_is_lost_is_charged_at_its_bound() -> None:
    made = fold(RESERVED, LOST)
    assert made.money["spent:total"] == 100
    assert nonzero(made.days["2026-01-31"]) == {
        f"attempts{LABELS}": 1, f"nano{LABELS}": 100, f"unknown{LABELS}": 1, f"bound{LABELS}": 100
    }  # fmt: skip


def test_the_truth_that_comes_late_replaces_the_bound() -> None:
    known = entry(3, "correct", 0, -60, bound=100, charged=40, known=1, input=7)
    assert nonzero(fold(RESERVED, LOST, known).days["2026-01-31"]) == {
        f"attempts{LABELS}": 1, f"nano{LABELS}": 40, f"input{LABELS}": 7
    }  # fmt: skip
    unknown = entry(3, "correct", 0, 0, bound=100, charged=100, known=0)
    assert fold(RESERVED, LOST, unknown).days == fold(RESERVED, LOST).days


def test_what_was_never_sent_is_no_attempt() -> None:
    released = entry(2, "release", -100, 0, bound=100, charged=0, known=1)
    made = fold(RESERVED, released)
    assert nonzero(made.money) == nonzero(made.days["2026-01-31"]) == {}
    late = entry(3, "correct", 0, -100, bound=100, charged=0, known=1)
    late = Entry(place=late.place, fields={**late.fields, "outcome": "released"})
    made = fold(RESERVED, LOST, late)
    assert nonzero(made.money) == nonzero(made.days["2026-01-31"]) == {}


def test_the_archives_sums_are_the_beginning() -> None:
    base = {"upto": "5-0", "entries": "9", "spent:total": "7", "over": "1", "open:a": "100"}
    made = Fold(base)
    assert (made.place, made.entries, made.open) == ("5-0", 0, {"a": 100})
    made.add(entry(6, "settle", -100, 1, bound=100, charged=1, known=1))
    assert (made.money["spent:total"], made.money["over"], made.open) == (8, 1, {})
