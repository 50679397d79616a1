"""Flow diagram of PRISMA 2020 (Page et al., BMJ 372:n71) as SVG, for new reviews that searched databases and registers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from orchestrator.screening.forms import ScreeningOutput, ScreeningRecall

_LEFT, _RIGHT, _WIDE, _LINE, _PAD, _GAP = 60, 440, 340, 18, 12, 34
#: characters of a line
_LONGEST = 46


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """A box of the flow, and the one of what leaves it; empty: nothing does."""

    #: written beside the box; that of several boxes stands beside the middle one
    stage: str
    box: Sequence[str]
    out: Sequence[str] = ()

    @property
    def height(self) -> int:
        return 2 * _PAD + _LINE * max(len(self.box), len(self.out))


def diagram(out: ScreeningOutput) -> str:
    """Return the diagram as an SVG document."""
    top = 20
    parts: list[str] = []
    steps = _steps(out)
    for number, step in enumerate(steps):
        parts += _box(_LEFT, top, step.height, step.box)
        parts.append(
            f'<text transform="translate(30 {top + step.height / 2:g}) rotate(-90)" text-anchor="middle" '
            f'font-weight="bold">{step.stage}</text>'
        )
        if step.out:
            parts += _box(_RIGHT, top, step.height, step.out)
            parts.append(
                _arrow(_LEFT + _WIDE, top + step.height / 2, _RIGHT, top + step.height / 2)
            )
        if number < len(steps) - 1:
            middle, bottom = _LEFT + _WIDE / 2, top + step.height
            parts.append(_arrow(middle, bottom, middle, bottom + _GAP))
        top += step.height + _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_RIGHT + _WIDE + 20} {top}" width="{_RIGHT + _WIDE + 20}" '
        f'height="{top}" font-family="sans-serif" font-size="13" role="img">\n<title>PRISMA 2020 flow diagram</title>\n'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z"/></marker></defs>\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _steps(out: ScreeningOutput) -> tuple[_Step, ...]:
    reports = out.reports
    gone = [_count("Duplicate records", out.duplicates)]
    if out.unreadable:
        gone.append(_count("Records that cannot be read", out.unreadable))
    left = [_count("Records excluded", out.excluded)]
    if out.unscreened:
        left += [_count("Records not screened", out.unscreened), *_lines(stated(out.recall))]
    excluded = [_count("Reports excluded", sum(one.reports for one in reports.excluded))]
    for one in reports.excluded:
        excluded += _lines(_count(one.reason, one.reports))
    if reports.waiting:
        excluded.append(_count("Reports not assessed yet", reports.waiting))
    sources = [line for one in out.sources for line in _lines(_count(one.file, one.records))]
    return (
        _Step(
            stage="Identification",
            box=["Records identified from:", *sources],
            out=["Records removed before screening:", *gone],
        ),
        _Step(stage="", box=[_count("Records screened", out.screened)], out=left),
        _Step(
            stage="Screening",
            box=[_count("Reports sought for retrieval", reports.sought)],
            out=[_count("Reports not retrieved", reports.not_retrieved)],
        ),
        _Step(
            stage="",
            box=[_count("Reports assessed for eligibility", reports.assessed)],
            out=excluded,
        ),
        _Step(stage="Included", box=[_count("Reports of included studies", reports.included)]),
    )


def stated(recall: ScreeningRecall) -> str:
    """Return a statement of recall as a sentence."""
    if recall.withheld is not None:
        return f"Recall is not stated: {recall.withheld}."
    if recall.at_least is None:
        return "Recall is not stated: no relevant record was found."
    # rounded down, so that it states no more than holds
    bound = int(recall.at_least * 1_000) / 10
    return f"Recall of the relevant records is at least {bound:.1f} % (confidence {recall.confidence:.0%})."


def _count(text: str, number: int) -> str:
    return f"{text} (n = {number:,})"


def _lines(text: str) -> list[str]:
    return wrap(text, _LONGEST)


def _box(left: int, top: int, height: int, lines: Iterable[str]) -> list[str]:
    shape = (
        f'<rect x="{left}" y="{top}" width="{_WIDE}" height="{height}" fill="none" stroke="black"/>'
    )
    texts = (
        f'<text x="{left + _PAD}" y="{top + _PAD + 13 + _LINE * number}">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return [shape, *texts]


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path d="M{x:g} {y:g} {to_x:g} {to_y:g}" stroke="black" fill="none" marker-end="url(#head)"/>'
