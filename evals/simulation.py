"""Fits the simulated model's profiles to published figures, and shows how near each figure it comes.

Usage: ``python -m evals.simulation [--write]``. Needs no data: the figures and their sources are in
``orchestrator/evaluation/simulation/published.json``.

A model's accuracy with the key passage at a place is taken as a mixture: its accuracy with that passage alone where it
takes the passage in, and its accuracy without any passage where it does not. The curve of taking in
(:class:`~orchestrator.evaluation.simulation.profiles.Curve`) is fitted to all models at once by least squares, each figure by
its standard error and 2 points for what the curve leaves out. The refusals are a logistic regression on counts. Two
rates have no published figure and are assumed: the shift of the log odds of refusing for the over-refusing and the
over-confident profile (the Adaptive RAG article says that models differ so, without numbers), and the share of
questions that the over-refusing one refuses in spite of the answer.

``--write`` rewrites the packaged parameters. Without it, it fails if they are not those of this fit.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.evaluation.simulation.profiles import FITTED, PUBLISHED, Curve, Refusals, read

PACKAGE = Path(__file__).parents[1] / "orchestrator" / "evaluation" / "simulation"
#: share of an accuracy that the curve cannot explain
_OWN_ERROR = 0.02
#: decimals of the parameters that are written, and how far another version of SciPy may be off
_DECIMALS, _TOLERANCE = 3, 0.02
#: assumed, not published: log odds of refusing, more or less; share refused in spite of the answer
SHIFT, SHY = 2.0, 0.15
MIXTRAL, GPT, LONGCHAT = "Mixtral-7x8b", "GPT-3.5-turbo-0125", "longchat-13b-16k"
#: parameters that models share, and those of each: start, least, most
_SHARED = {"primacy": (1.5, 0.3, 10.0), "fading": (1.5, 0.3, 10.0)}
_EACH = {"dilution": (0.1, 0.0, 1.0), "depth": (0.3, 0.0, 1.0), "recency": (0.5, 0.0, 1.0)}


def curves(models: Sequence[Mapping[str, Any]]) -> dict[str, Curve]:
    """Return the likeliest curve of each model."""
    from scipy.optimize import least_squares  # type: ignore[import-untyped]

    limits = [*_SHARED.values(), *(limit for _ in models for limit in _EACH.values())]

    def unpacked(values: Sequence[float]) -> list[Curve]:
        shared = dict(zip(_SHARED, values, strict=False))
        each = np.reshape(values[len(_SHARED) :], (len(models), len(_EACH)))
        return [Curve(**shared, **dict(zip(_EACH, row, strict=True))) for row in each.tolist()]

    def errors(values: Sequence[float]) -> list[float]:
        return [
            (accuracy(model, curve, point) - point["accuracy"]) / 100 / _error(model)
            for model, curve in zip(models, unpacked(values), strict=True)
            for point in model["points"]
        ]

    start, least, most = zip(*limits, strict=True)
    found = unpacked(least_squares(errors, start, bounds=(least, most)).x.tolist())
    return {
        model["model"]: Curve(**_rounded(asdict(curve)))
        for model, curve in zip(models, found, strict=True)
    }


def accuracy(model: Mapping[str, Any], curve: Curve, point: Mapping[str, Any]) -> float:
    """Return the accuracy that a curve predicts for a place, percent."""
    taken = curve(point["before"], point["passages"] - 1 - point["before"])
    found: float = model["without"] + (model["alone"] - model["without"]) * taken
    return found


def refusals(counts: Sequence[Mapping[str, int]]) -> Refusals:
    """Return the likeliest logistic curve of refusals among errors."""
    from scipy.optimize import minimize

    def surprise(values: Sequence[float]) -> float:
        curve = Refusals(one=values[0], doubling=values[1])
        total = 0.0
        for row in counts:
            p = curve(row["passages"])
            total -= row["refused"] * math.log(p)
            total -= (row["errors"] - row["refused"]) * math.log(1 - p)
        return total

    one, doubling = minimize(surprise, (0.0, 0.0), method="Nelder-Mead").x.tolist()
    return Refusals(**_rounded({"one": one, "doubling": doubling}))


def fit(published: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of the file of parameters."""
    taking, refusing = curves(published["positions"]), refusals(published["refusals"]["counts"])
    reading = {row["model"]: row["accuracy"] / 100 for row in published["readings"]}
    conflicts = {row["model"]: row for row in published["conflicts"]}
    shifted = Refusals(one=refusing.one + SHIFT, doubling=refusing.doubling)
    bold = Refusals(one=refusing.one - SHIFT, doubling=refusing.doubling)
    nothing = Curve(dilution=0.0, depth=0.0, primacy=1.0, recency=0.0, fading=1.0)

    def row(
        name: str, model: str, *, reads: str | None = None, like: str | None = None, **other: Any
    ) -> dict[str, Any]:
        told = conflicts[like or model]
        values = {
            "takes_in": asdict(taking[model]),
            "refuses": asdict(refusing),
            "shy": 0.0,
        } | other
        return {
            "name": name,
            "basis": _basis(model, like or model, other),
            **values,
            **_rounded(
                {
                    "reads": reading[reads or model],
                    "misled": told["conflicts"] / told["questions"],
                    "resolves": told["resolved"] / told["conflicts"],
                }
            ),
        }

    return {
        "about": f"Fitted to {PUBLISHED} by python -m evals.simulation --write. Not measured on any model here.",
        "profiles": [
            row("strong", MIXTRAL),
            row("weak", LONGCHAT, like=GPT),
            row("over-refusing", GPT, refuses=asdict(shifted), shy=SHY),
            row("over-confident", GPT, refuses=asdict(bold)),
            row("immune", MIXTRAL, takes_in=asdict(nothing)),
        ],
    }


def _basis(model: str, conflicts: str, other: Mapping[str, Any]) -> str:
    said = f"curve and reading of {model}, conflicts of {conflicts}"
    changed = {
        "refuses": "log odds of refusing shifted (assumed)",
        "shy": "refusals in spite of the answer (assumed)",
        "takes_in": "but nothing is lost by place or length",
    }
    return "; ".join([said, *(changed[name] for name in other)])


def _error(model: Mapping[str, Any]) -> float:
    return math.hypot(math.sqrt(0.25 / model["questions"]), _OWN_ERROR)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, _DECIMALS) for name, value in values.items()}


def same(one: Any, other: Any) -> bool:
    """Return whether two contents of the file of parameters agree, numbers within the tolerance."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return bool(abs(one - other) <= _TOLERANCE)


def table(published: Mapping[str, Any]) -> Iterator[str]:
    """A row a figure: published and fitted, percent."""
    yield "| model | passages | before | published | fitted |"
    yield "| --- " * 5 + "|"
    taking = curves(published["positions"])
    off = []
    for model in published["positions"]:
        for point in model["points"]:
            fitted = accuracy(model, taking[model["model"]], point)
            off.append(abs(fitted - point["accuracy"]))
            yield (
                f"| {model['model']} | {point['passages']} | {point['before']:g} | {point['accuracy']:.1f} "
                f"| {fitted:.1f} |"
            )
    yield f"mean distance {np.mean(off):.2f} points, largest {max(off):.2f}"
    refusing = refusals(published["refusals"]["counts"])
    for row in published["refusals"]["counts"]:
        yield (
            f"refusals among errors with {row['passages']} passages: published {row['refused']} of {row['errors']}, "
            f"fitted {refusing(row['passages']):.2f}"
        )


def main(argv: list[str] | None = None) -> int:
    """Fit and print; the exit status is 1 where the packaged parameters are others."""
    parser = argparse.ArgumentParser(
        prog="evals.simulation", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="rewrite the packaged parameters")
    given = parser.parse_args(argv)
    published = read(PUBLISHED)
    print(*table(published), sep="\n")
    found = fit(published)
    if given.write:
        text = json.dumps(found, indent=1) + "\n"
        (PACKAGE / FITTED).write_text(text, encoding="utf-8")
    elif not same(found, read(FITTED)):
        print("the packaged parameters are not those of this fit: pass --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
