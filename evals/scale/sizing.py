"""Tables of ``docs/concepts/sizing.md`` and ``evals/results/index.md``, from the figures of :mod:`evals.scale`.

This writes the text between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``. Figures measured elsewhere, and
assumptions, are in ``docs/figures/sizing.json``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.scale.build import exponent

#: abstracts in PubMed that have one, and all of PubMed's records
TARGETS = (24_000_000, 38_000_000)


@dataclass(frozen=True, kw_only=True, slots=True)
class Law:
    """How a figure is carried from what was measured to more passages: ``a + b · n^e``."""

    #: what does not grow
    constant: float
    #: at the largest size that was measured, without the constant
    value: float
    size: float
    exponent: float

    def at(self, n: float) -> float:
        """The figure at n passages."""
        return self.constant + self.value * math.pow(n / self.size, self.exponent)

    def __str__(self) -> str:
        constant = f"{self.constant:,.3g} + " if self.constant else ""
        return f"{constant}{self.value:,.3g} · (n / {self.size:,.0f})^{self.exponent:.2f}"


def write_page(known: dict[str, Any], figures: Path, growth: str) -> None:
    """Fill in the tables of ``docs/concepts/sizing.md`` and ``evals/results/index.md``, if the pages exist.

    Args:
        known: figures of :mod:`evals.scale`.
        figures: folder of ``sizing.json``.
        growth: table of all sizes.
    """
    pages = {
        figures.parent / "concepts" / "sizing.md": ("sizing", "encoding"),
        figures.parents[1] / "evals" / "results" / "index.md": ("growth", "likeness"),
    }
    if not all(page.exists() for page in pages):
        return
    given = json.loads((figures / "sizing.json").read_text(encoding="utf-8"))
    sizes = known["sizes"]
    tables = {
        "growth": growth,
        "sizing": sizing(sizes, given),
        "encoding": encoding(given),
        "likeness": likeness(known.get("likeness")),
    }
    for page, names in pages.items():
        text = page.read_text(encoding="utf-8")
        for name in names:
            before, found, rest = text.partition(f"<!-- begin {name} -->")
            _, ended, after = rest.partition(f"<!-- end {name} -->")
            if not found or not ended:
                raise ValueError(f"{page} has no place for the table {name}")
            text = f"{before}{found}\n\n{tables[name]}\n\n{ended}{after}"
        page.write_text(text, encoding="utf-8")


def sizing(sizes: Sequence[dict[str, Any]], given: dict[str, Any]) -> str:
    """Disk, memory, hours of building and time of a question, for :data:`TARGETS`."""
    large = [one for one in sizes if one["vector_index"] == "IvfPq"] or list(sizes[-1:])
    last = large[-1]
    n = float(last["rows"])
    lines = [
        f"| | measured at {n:,.0f} | formula | {' | '.join(f'{t / 1e6:.0f} million' for t in TARGETS)} |",
        f"| --- | ---: | --- | {' | '.join('---:' for _ in TARGETS)} |",
    ]

    def add(name: str, law: Law, shown: Callable[[float], str]) -> None:
        cells = [shown(law.at(target)) for target in TARGETS]
        lines.append(f"| {name} | {shown(law.at(n))} | {law} | {' | '.join(cells)} |")

    def linear(value: float) -> Law:
        return Law(constant=0, value=value, size=n, exponent=1)

    plain = last["disk_mb"] * 1e6
    codes = given["token_code_bytes_a_passage"] * n
    phrases = given["phrase_bytes_a_passage"] * n
    add("disk", linear(plain), _gigabytes)
    add("disk with token codes and phrases", linear(plain + codes + phrases), _gigabytes)
    add("disk while it is built or compacted", linear(2 * (plain + codes + phrases)), _gigabytes)
    base = float(last["reader_libraries_mb"]) * 1e6
    reader = max(0.0, last["reader_peak_mb"] * 1e6 - base)
    add("memory of a reading process, without its model",
        Law(constant=base, value=reader, size=n, exponent=1), _gigabytes)  # fmt: skip
    floor = float(sizes[0]["build_peak_mb"]) * 1e6
    add("memory of the process that builds",
        Law(constant=floor, value=max(0.0, last["build_peak_mb"] * 1e6 - floor), size=n, exponent=1),
        _gigabytes)  # fmt: skip
    for name, key in (
        ("writing", "build_write_s"),
        ("joining files, ids and words", "build_files_s"),
        ("indexing vectors", "build_vectors_s"),
    ):
        if last.get(key):
            add(
                name,
                Law(constant=0, value=last[key], size=n, exponent=_exponent(large, key, least=1.0)),
                _hours,
            )
    for name, key in (
        ("retrieval, p50", "retrieve_p50_ms"),
        ("retrieval, p95", "retrieve_p95_ms"),
    ):
        law = Law(constant=0, value=last[key], size=n, exponent=_exponent(large, key, least=0.5))
        add(name, law, _milliseconds)
    return "\n".join(lines)


def encoding(given: dict[str, Any]) -> str:
    """Hours to make the vectors, for :data:`TARGETS`."""
    lines = [
        f"| | abstracts a second | {' | '.join(f'{t / 1e6:.0f} million, hours' for t in TARGETS)} | where the rate is from |",
        f"| --- | ---: | {' | '.join('---:' for _ in TARGETS)} | --- |",
    ]
    for one in given["encoding"]:
        rate = one["abstracts_a_second"]
        if rate is None:
            flops = one["flops_a_token"] * one["tokens_an_abstract"]
            rate = one["peak_flops"] * one["share_of_peak"] / flops
        cells = [f"{target / rate / 3_600:,.0f}" for target in TARGETS]
        lines.append(f"| {one['name']} | {rate:,.0f} | {' | '.join(cells)} | {one['source']} |")
    return "\n".join(lines)


def likeness(compared: dict[str, Any] | None) -> str:
    """Real and synthetic vectors side by side."""
    if compared is None:
        return "Not measured yet."
    ranks = sorted(compared["real"]["cosines"], key=int)
    probes = sorted(compared["real"]["recall"], key=int)
    header = [f"neighbour {rank}" for rank in ranks] + [f"{n} probes" for n in probes]
    lines = [
        f"| {compared['rows']:,} vectors | {' | '.join(header)} |",
        f"| --- |{' ---: |' * len(header)}",
    ]
    for name in ("real", "synthetic"):
        one = compared[name]
        values = [one["cosines"][rank] for rank in ranks] + [one["recall"][n] for n in probes]
        lines.append(f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |")
    return "\n".join(lines)


def _exponent(sizes: Sequence[dict[str, Any]], key: str, *, least: float) -> float:
    """Fitted over the sizes that are indexed approximately, and no less than theory says."""
    points = [(one["rows"], one[key]) for one in sizes if one.get(key)]
    if len(points) < 2:
        return least
    fitted = exponent(*zip(*points, strict=True))
    return max(least, round(fitted, 2)) if math.isfinite(fitted) else least


def _gigabytes(value: float) -> str:
    gigabytes = value / 1e9
    return f"{gigabytes:,.0f} GB" if gigabytes >= 10 else f"{gigabytes:.2g} GB"


def _milliseconds(value: float) -> str:
    return f"{value:,.0f} ms"


def _hours(value: float) -> str:
    return f"{value / 3_600:,.1f} h" if value >= 3_600 else f"{value:,.0f} s"
