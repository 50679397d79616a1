"""Measures tokens and dollars of questions, before and after: by strategy, form of quotes, lane and repeated prefix.

Usage: ``python -m evals.cost [--data PATH] [--questions N] [--before CHECKOUT]``.

PubMedQA's questions with their 8 nearest passages of the pool (without ``--data``: the packaged sample's) are answered by
a scripted model that says the same in every version and form, see :mod:`evals.cost_calls`. ``--before`` is a checkout of
another version (the figures in the documentation: da44b34); its calls are made in a process of its own. Tokens are those
of estimates (:mod:`orchestrator.question.estimates.tokens`), the schemas of replies included; dollars are list prices.

Of a ladder, tokens that a prompt shares with the one before it are priced as reads of the provider's cache where they are
at least 1,024, in steps of 128, as OpenAI caches.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from evals.cost_questions import dump, load
from orchestrator.question.estimates.tokens import (
    PER_CALL,
    PER_MESSAGE,
    SCALE,
    SCHEMA_SCALE,
    packaged_counter,
)
from posology.budget.prices.book import packaged
from posology.types import QUOTE_FORMS, Tier, Usage

MODELS: Final = ("openai:gpt-6-luna", "openai:gpt-5-mini", "anthropic:claude-sonnet-5")
LANES: Final[tuple[Tier, ...]] = ("standard", "flex", "batch")
_K = 8
#: fewest tokens that are cached, and the steps of it
_CACHED, _STEP = 1_024, 128

_count = packaged_counter()


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Tokens of the calls of one strategy."""

    calls: int
    input: int
    output: int
    #: of the input, tokens that a prompt shares with the one before it
    repeated: int
    dropped: int

    def usage(self, *, prefix: bool) -> Usage:
        """Return the usage, with or without reads of a cache."""
        read = self.repeated if prefix else 0
        return Usage(input=self.input - read, cache_read=read, output=self.output)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--before", type=Path)
    args = parser.parse_args()
    here = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        questions = Path(folder) / "questions.json"
        asked = load(args.data, args.questions, _K)
        dump(asked, questions)
        found = {}
        if args.before is not None:
            found["before"] = _costs(args.before, questions, Path(folder) / "before.json", ())
        for form in QUOTE_FORMS:
            found[form] = _costs(here, questions, Path(folder) / f"{form}.json", (form,))
    print(f"{len(asked)} questions, {_K} passages each; per question:\n")
    _print_tokens(found, len(asked))
    _print_dollars(found, len(asked))


def _costs(version: Path, questions: Path, out: Path, form: tuple[str, ...]) -> dict[str, Cost]:
    script = Path(__file__).with_name("cost_calls.py")
    subprocess.run(
        [sys.executable, "-P", str(script), str(questions), str(out), *form],
        check=True,
        cwd=out.parent,
        env={"PYTHONPATH": str(version.resolve()), "PATH": ""},
    )
    made = json.loads(out.read_text(encoding="utf-8"))
    return {name: _sum(every) for name, every in made.items()}


def _sum(questions: Sequence[Sequence[dict[str, Any]]]) -> Cost:
    calls = [call for question in questions for call in question]
    return Cost(
        calls=len(calls),
        input=round(sum(map(_input, calls))),
        output=round(sum(_count(call["reply"]) * SCALE for call in calls)),
        repeated=sum(map(_repeated, questions)),
        dropped=sum(call["dropped"] for call in calls),
    )


def _input(call: dict[str, Any]) -> float:
    texts = sum(map(_count, call["messages"])) * SCALE
    around = PER_CALL + PER_MESSAGE * len(call["messages"])
    return texts + around + _count(call["schema"]) * SCHEMA_SCALE


def _repeated(calls: Sequence[dict[str, Any]]) -> int:
    """Return the tokens that each answer's prompt shares with the one before it, as far as they are cached."""
    answers = [call for call in calls if call["stage"] == "answer"]
    shared = 0
    for before, after in pairwise(answers):
        if before["schema"] != after["schema"]:
            # a provider puts it first
            continue
        one, other = ("\0".join(call["messages"]) for call in (before, after))
        same = next(
            (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one)
        )
        tokens = int(_count(one[:same]) * SCALE)
        shared += tokens // _STEP * _STEP if tokens >= _CACHED else 0
    return shared


def _print_tokens(found: dict[str, dict[str, Cost]], questions: int) -> None:
    print("| strategy | version | calls | input | output | repeated | dropped quotes |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for strategy in next(iter(found.values())):
        for version, costs in found.items():
            one = costs[strategy]
            print(
                f"| {strategy} | {version} | {one.calls / questions:.2f} | {one.input / questions:,.0f} | "
                f"{one.output / questions:,.0f} | {one.repeated / questions:,.0f} | {one.dropped} |"
            )


def _print_dollars(found: dict[str, dict[str, Cost]], questions: int) -> None:
    prices = packaged()
    for model in MODELS:
        print(
            f"\n{model}, dollars for {questions} questions (share of before in the lane standard):\n"
        )
        print("| strategy | version | standard | flex | batch | standard, prefix cached |")
        print("| --- | --- | --- | --- | --- | --- |")
        for strategy in next(iter(found.values())):
            former = None
            if "before" in found:
                former = prices.cost(model, found["before"][strategy].usage(prefix=False))
            for version, costs in found.items():
                one = costs[strategy]
                row = [prices.cost(model, one.usage(prefix=False), lane) for lane in LANES]
                row.append(prices.cost(model, one.usage(prefix=True)))
                print(
                    f"| {strategy} | {version} | {' | '.join(_dollars(c, former) for c in row)} |"
                )


def _dollars(cost: Decimal | None, former: Decimal | None) -> str:
    if cost is None:
        return "not sold"
    return f"{cost:.4f}" + (f" ({cost / former:.0%})" if former else "")


if __name__ == "__main__":
    main()
