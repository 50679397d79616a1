"""Report of :mod:`evals.scale`: table, growth, figure, and the tables of the sizing page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evals.scale.build import exponent
from evals.scale.sizing import write_page

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"
#: figure → what it is called in the table
ROWS = {
    "build_s": "build, s",
    "build_write_s": "… writing",
    "build_files_s": "… files joined, ids and words indexed",
    "build_columns_s": "… columns indexed",
    "build_vectors_s": "… vectors indexed",
    "build_recall_s": "… recall measured",
    "build_cpu_s": "… processor time of it, s",
    "build_peak_mb": "peak memory of the builder, MB",
    "disk_mb": "disk, MB",
    "disk_data_mb": "… passages",
    "disk_words_mb": "… index of words",
    "disk_vectors_mb": "… index of vectors",
    "disk_columns_mb": "… indices of columns",
    "vector_index": "index of vectors",
    "probes": "partitions looked into",
    "partitions": "… of",
    "recall_at_build": "recall@16, measured at build, sentences",
    "recall_16": "recall@16, real questions",
    "open_s": "opening, s",
    "cold_first_answer_s": "opening and first retrieval, s",
    "warm_s": "reading the indices in, s",
    "retrieve_p50_ms": "retrieval of 16, p50 ms",
    "retrieve_p95_ms": "… p95",
    "dense_p50_ms": "… dense, 100, p50",
    "dense_p95_ms": "… p95",
    "bm25_p50_ms": "… BM25, 100, p50",
    "bm25_p95_ms": "… p95",
    "take_p50_ms": "… reading 16, p50",
    "reader_peak_mb": "peak memory of a reader, MB",
    "reader_libraries_mb": "… before it opens the index",
}
#: what is plotted: title, unit, figures
PLOTS = (
    ("Building", "seconds", ("build_s", "build_write_s", "build_files_s", "build_vectors_s")),
    ("Disk", "MB", ("disk_mb", "disk_data_mb", "disk_words_mb", "disk_vectors_mb")),
    ("Retrieval of 16, p50 and p95", "milliseconds",
     ("retrieve_p50_ms", "retrieve_p95_ms", "dense_p50_ms", "bm25_p50_ms")),
    ("Peak memory", "MB", ("build_peak_mb", "reader_peak_mb")),
    ("Recall@16 against an exact search", "share", ("recall_16", "recall_at_build")),
)  # fmt: skip


def measured(work: Path) -> list[dict[str, Any]]:
    """Return the figures of each size that is measured, the smallest first."""
    read = (json.loads(path.read_text(encoding="utf-8")) for path in work.glob("result-*.json"))
    return sorted(read, key=lambda one: int(one["rows"]))


def report(work: Path, figures: Path) -> str:
    """Merge what is measured into ``figures``, draw it, write the page, and return the tables as text."""
    found = measured(work)
    kept = figures / "scale.json"
    known: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    if found:
        known["sizes"] = found
    if (likeness := work / "likeness.json").exists():
        known["likeness"] = json.loads(likeness.read_text(encoding="utf-8"))
    sizes: list[dict[str, Any]] = known.get("sizes", [])
    if not sizes:
        return "nothing is measured yet"
    kept.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    plot(sizes, figures / "scale.png")
    growth = table(sizes)
    write_page(known, figures, growth)
    return growth


def table(sizes: Sequence[dict[str, Any]], cell: Callable[[Any], str] | None = None) -> str:
    """A line a figure, a column a size, and last how it grows: Markdown."""
    shown = cell or _cell
    header = [*(f"{int(one['rows']):,}" for one in sizes), "grows as n^"]
    lines = [_line("passages", header), _line("---", ["---:"] * len(header))]
    filtered = {
        f"retrieve_{name}_p50_ms": f"retrieval, {name} ({_share(sizes[-1], name)}), p50 ms"
        for name in _filters(sizes)
    }
    recalled = {f"recall_{name}": f"recall@16, {name}" for name in _filters(sizes)}
    for key, name in {**ROWS, **filtered, **recalled}.items():
        values = [one.get(key) for one in sizes]
        if any(value is not None for value in values):
            lines.append(_line(name, [*map(shown, values), _growth(sizes, key)]))
    return "\n".join(lines)


def plot(sizes: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw :data:`PLOTS`, logarithmic but for recall."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(PLOTS), figsize=(4.2 * len(PLOTS), 3.8))
    for axis, (title, unit, keys) in zip(axes, PLOTS, strict=True):
        for key in keys:
            points = [(one["rows"], one[key]) for one in sizes if one.get(key)]
            if points:
                axis.plot(
                    *zip(*points, strict=True), marker="o", label=ROWS[key].removeprefix("… ")
                )
        axis.set(title=title, xlabel="passages", ylabel=unit, xscale="log")
        if unit == "share":
            axis.set_ylim(0.9, 1.005)
        else:
            axis.set_yscale("log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _filters(sizes: Sequence[dict[str, Any]]) -> list[str]:
    return [key.removeprefix("share_") for key in sizes[-1] if key.startswith("share_")]


def _share(one: dict[str, Any], name: str) -> str:
    return f"{100 * float(one[f'share_{name}']):.3g} %"


def _growth(sizes: Sequence[dict[str, Any]], key: str) -> str:
    points = [(one["rows"], one[key]) for one in sizes if isinstance(one.get(key), int | float)]
    points = [(rows, value) for rows, value in points if value > 0]
    if len(points) < 2 or key.startswith("recall"):
        return ""
    return f"{exponent(*zip(*points, strict=True)):.2f}"


def _cell(value: object) -> str:
    match value:
        case None:
            return "–"
        case float() if value < 10:
            return f"{value:.3g}"
        case int() | float():
            return f"{value:,.0f}"
    return str(value)


def _line(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"
