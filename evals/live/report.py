"""Tables of :mod:`evals.live`: what was answered, rightly and not, by model, set and way, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from evals.live.rows import HIDDEN, SEARCH
from orchestrator.evaluation.measures import mean

Row = dict[str, Any]
#: outcomes that give an answer; of an unsupported one no quote stands
_ANSWERED = ("answered", "unsupported")
_HEAD = (
    "set", "way", "n", "answered", "unsupported", "refused", "failed", "verdict", "right", "wrong", "quotes named", "kept", "gold quoted",
    "supported", "in", "out", "calls", "s", "s a right one", "$ a right one",
)  # fmt: skip

_SEARCH_HEAD = (
    "set", "first search", "n", "searched again", "right before", "right after", "wrong before", "wrong after", "tokens before",
    "tokens after", "tokens a right one before", "after",
)  # fmt: skip

#: ways that are compared with each other where all of them were asked
POLICIES = ("router", "direct", "compressed", "briefcontext")
_POLICY_HEAD = (
    "policy",
    "n",
    "right",
    "wrong",
    "calls",
    "tokens",
    "tokens a right one",
    "s a right one",
)


def report(rows: Sequence[Row], only: str = "") -> str:
    """Return the tables as Markdown: one for each model, or for one alone."""
    parts = []
    wanted = [row for row in rows if row["model"] == only] if only else rows
    for (model, half), found in _grouped(wanted, "model", "half"):
        parts += [
            f"## {model}, half {half}",
            "",
            " | ".join(_HEAD),
            " | ".join(["---"] * len(_HEAD)),
        ]
        parts += [
            " | ".join(_line(name, way, list(group)))
            for (name, way), group in _grouped(found, "set", "way")
        ]
        parts += ["", *_searches([row for row in found if row["way"] in (SEARCH, HIDDEN)])]
        parts += _policies([row for row in found if row["way"] in POLICIES])
    return "\n".join(parts)


def _policies(rows: Sequence[Row]) -> list[str]:
    """Return what the router and fixed strategies made of the same questions; wrong answers and refusals are paid for."""
    asked = [{(row["set"], row["id"]) for row in rows if row["way"] == way} for way in POLICIES]
    both = set.intersection(*asked)
    if not both:
        return []
    lines = [" | ".join(_POLICY_HEAD), " | ".join(["---"] * len(_POLICY_HEAD))]
    for (way,), found in _grouped([row for row in rows if (row["set"], row["id"]) in both], "way"):
        known = _known(found)
        rights, wrongs, tokens = (
            [value(row) for row in known] for value in (_quoted_right, _quoted_wrong, _tokens)
        )
        seconds = [row["seconds"] for row in known]
        each = (_each(amounts, sum(rights), ",.0f") for amounts in (tokens, seconds))
        calls = f"{sum(len(row['calls']) for row in known) / len(known):.1f}"
        lines.append(" | ".join([way, str(len(known)), *map(interval, (rights, wrongs)), calls, _mean(tokens), *each]))  # fmt: skip
    return [*lines, ""]


def _searches(rows: Sequence[Row]) -> list[str]:
    """Return the table of second searches: what was answered, with a quote that stands, before them and after."""
    if not rows:
        return []
    lines = [" | ".join(_SEARCH_HEAD), " | ".join(["---"] * len(_SEARCH_HEAD))]
    for (name, way), found in (*_grouped(rows, "set", "way"), *_all(rows)):
        known = _known(found)
        before = [_before(row) for row in known]
        rights, wrongs, tokens = (
            [[value(row) for row in part] for part in (before, known)]
            for value in (_quoted_right, _quoted_wrong, _tokens)
        )
        lines.append(" | ".join([
            name, "finds it" if way == SEARCH else "misses it", str(len(known)),
            _share([_again(row) for row in known]), *map(interval, (*rights, *wrongs)), *map(_mean, tokens),
            *(f"{sum(t) / sum(r):,.0f}" if sum(r) else "" for t, r in zip(tokens, rights, strict=True)),
        ]))  # fmt: skip
    return [*lines, ""]


def _all(rows: Sequence[Row]) -> list[tuple[tuple[str, ...], list[Row]]]:
    return [(("all", way), found) for (way,), found in _grouped(rows, "way")]


def _known(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of questions whose right answer is known."""
    return [row for row in rows if row["form"] != "free" or row["words"] or not row["answerable"]]


def _again(row: Row) -> bool:
    """Return whether a question was searched again."""
    return any(dose["skip"] for dose in row.get("doses", ()))


def _before(row: Row) -> Row:
    """Return what would have become of a question without its second search: a refusal, or an answer without a quote."""
    if not _again(row):
        return row
    return row | {"outcome": "refused", "calls": row["calls"][: row["rungs"]]}


def _quoted_right(row: Row) -> float:
    """Return 1 for a right answer of which a quote stands, and for one of these to no near miss."""
    answered = row["outcome"] == "answered"
    return float(answered and row["right"] is True if row["answerable"] else not answered)


def _quoted_wrong(row: Row) -> float:
    return float(row["outcome"] == "answered" and row["right"] is not True)


def _tokens(row: Row) -> float:
    return sum(
        (call.get("tokens_in") or 0) + (call.get("tokens_out") or 0) for call in row["calls"]
    )


def _grouped(rows: Sequence[Row], *names: str) -> list[tuple[tuple[str, ...], list[Row]]]:
    key: Callable[[Row], tuple[str, ...]] = lambda row: tuple(row[name] for name in names)  # noqa: E731
    return [(one, list(group)) for one, group in groupby(sorted(rows, key=key), key)]


def _line(name: str, way: str, rows: list[Row]) -> list[str]:
    answered = [row for row in rows if row["outcome"] in _ANSWERED]
    chosen = [row for row in answered if row["form"] != "free"]
    known = _known(rows)
    right = [float(row["right"] is True) for row in known]
    wrong = [float(row["outcome"] in _ANSWERED and row["right"] is False) for row in known]
    quoted = [row["gold_quoted"] for row in answered if row.get("gold_quoted") is not None]
    kept = sum(len(row.get("citations", ())) for row in answered)
    named = kept + sum(row.get("dropped", 0) for row in answered)
    calls = [call for row in rows for call in row["calls"]]
    backed = [one["backing"] == "supported" for row in answered for one in row.get("support", ())]
    return [
        name,
        way,
        str(len(rows)),
        *(
            interval([float(row["outcome"] == outcome) for row in rows])
            for outcome in (*_ANSWERED, "refused")
        ),
        str(sum(row["outcome"] == "failed" for row in rows)),
        _share([row["verdict"] is not None for row in chosen]),
        interval(right),
        interval(wrong),
        str(named),
        f"{kept / named:.2f}" if named else "",
        _share(quoted),
        _share(backed),
        _mean([sum(call.get("tokens_in") or 0 for call in row["calls"]) for row in rows]),
        _mean([sum(call.get("tokens_out") or 0 for call in row["calls"]) for row in rows]),
        f"{len(calls) / len(rows):.1f}",
        _mean([row["seconds"] for row in rows]),
        _each([row["seconds"] for row in rows], sum(right), ",.0f"),
        # rows of earlier versions, and models whose price is unknown, have no dollars
        _each([row.get("usd") for row in rows], sum(right), ".4g"),
    ]


def _each(amounts: Sequence[float | str | None], right: float, form: str) -> str:
    """Return what a right answer took, wrong ones and refusals paid for; empty: unknown, or none was right."""
    if not right or any(amount is None for amount in amounts):
        return ""
    return format(sum(float(amount) for amount in amounts if amount is not None) / right, form)


def interval(values: Sequence[float]) -> str:
    """Return the mean of shares with its 95 % interval (bootstrap over questions); empty without values."""
    found = mean(values)
    return "" if found is None else f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _share(values: Sequence[bool]) -> str:
    return f"{sum(values) / len(values):.2f}" if values else ""


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):,.0f}" if values else ""
