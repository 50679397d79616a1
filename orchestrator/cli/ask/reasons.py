"""Recorded reasons of decisions in plain words.

Policies record their reasons in fixed sentences, and a replay compares them: they are not reworded, but translated when they
are shown. A sentence without a translation is shown as it is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_RUNGS = re.compile(r", by ([0-9]+(?:, [0-9]+)*) passages")


def in_words(steps: Sequence[str]) -> list[str]:
    """Return the recorded sentences in plain words, in order."""
    return [_translated(step) for step in steps]


def dose_in_words(described: str) -> str:
    """Return a described dose with its steps in words: ``direct over 4, then 8 passages``."""
    rungs = _rungs(described)
    steps = f" over {', then '.join(map(str, rungs))} passages"
    return _RUNGS.sub(steps, described) if rungs else described


def _translated(step: str) -> str:
    for pattern, words in _SENTENCES:
        if found := pattern.fullmatch(step):
            return words(found)
    return step


def _agree(found: re.Match[str]) -> str:
    n, iou, limit = found["n"], float(found["iou"]), float(found["limit"])
    ranks = f"Dense and BM25 rankings {{}} on the top {n} (IoU {iou:.2f} {{}} {limit:.2f})"
    if iou <= limit:
        return (
            f"{ranks.format('disagree', '≤')}, so the key passage may be buried among the others."
        )
    return f"{ranks.format('agree', '>')}, so the key passage is probably among the first."


def _uncalibrated(found: re.Match[str]) -> str:
    return (
        f"No calibration fits this embedder and order of passages ({found['order']}), so the rankings are a hint only. "
        f"{_agree(found)}"
    )


def _unsure(found: re.Match[str]) -> str:
    return (
        f"A hint does not justify BriefContext, but reading only a few passages is too risky: read {_whole(found)} in one "
        f"call{_then(found)}."
    )


def _chance(found: re.Match[str]) -> str:
    chance, limit = float(found["chance"]), float(found["limit"])
    low = chance < limit
    end = (
        "low enough to begin with the first passages"
        if low
        else "too high to trust the first passages"
    )
    return (
        f"The chance that the key passage is not among the first {found['n']} is about {_percent(chance)}: {end} (limit: "
        f"{_percent(limit)})."
    )


def _few(found: re.Match[str]) -> str:
    return f"Only {found['count']} passages were found, so none can be buried among the others."


def _ladder(found: re.Match[str]) -> str:
    rungs = _rungs(found["dose"])
    if not rungs:
        return found[0]
    first, *more = rungs
    steps = [
        f"Read the first {first} passages" if more else f"Read all {first} passages in one call"
    ]
    steps += [f"if they hold no answer, read {rung}" for rung in more]
    if found["all"]:
        steps.append(f"if there is still no answer, {_next(found)}")
    return f"{'; '.join(steps)}."


def _doubtful(found: re.Match[str]) -> str:
    return (
        f"That is below {_percent(float(found['sure']))}, so BriefContext is not worth its cost yet, but reading only a few "
        f"passages is too risky: read {_whole(found)} in one call{_then(found)}."
    )


def _whole(found: re.Match[str]) -> str:
    rungs = _rungs(found["dose"])
    return f"all {rungs[-1]} passages" if rungs else "all passages"


def _then(found: re.Match[str]) -> str:
    return f"; if they hold no answer, {_next(found)}" if found["all"] else ""


def _next(found: re.Match[str]) -> str:
    if found["all"].endswith("search"):
        return "search for others"
    return "read all of them in small groups (BriefContext)"


def _searched(found: re.Match[str]) -> str:
    return (
        f"{found['tried']} passages were read and the model found no answer: read the best of them with "
        f"{found['more']} others, found by a second search."
    )


def _again(found: re.Match[str]) -> str:
    return (
        f"{found['tried']} of {found['all']} passages were read and the model found no answer: read all of them in small "
        "groups (BriefContext)."
    )


def _paid(found: re.Match[str]) -> str:
    return f"Worst-case cost: ${found['worst']}. Remaining budget: ${found['left']}."


def _dear(found: re.Match[str]) -> str:
    return (
        f"The remaining budget of ${found['left']} does not cover the worst case of {found['dear']}; chosen instead: "
        f"{dose_in_words(found['dose'])}, at most ${found['worst']}."
    )


def _declined(found: re.Match[str]) -> str:
    return (
        f"The remaining budget of ${found['left']} does not cover the worst case of any way to answer ({found['dear']}): "
        "the question is declined."
    )


def _rungs(dose: str) -> list[int]:
    found = _RUNGS.search(dose)
    return [] if found is None else [int(one) for one in found[1].split(", ")]


def _percent(share: float) -> str:
    if 0 < share < 0.005:
        return "0 %" if share < 0.0005 else f"{share:.1%}".replace("%", " %")
    return f"{share:.0%}".replace("%", " %")


_END = r"(?P<all>, then (?:BriefContext over all|a second search))?\."
_IOU = (
    r"the IoU of the first (?P<n>\d+) by meaning and by words is (?P<iou>[\d.]+), (?:no more than|above) "
    r"(?P<limit>[\d.]+): .*"
)
_SENTENCES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            rf"Preflight \(\w+\): no calibration for passages in (?P<order>.+) order: {_IOU}",
            _uncalibrated,
        ),
        (rf"Preflight \(\w+\): (?:.*: )?{_IOU}", _agree),
        (
            (
                r"Preflight \(\w+\): the key passage is beyond place (?P<n>\d+) of the .+ order with probability "
                r"(?P<chance>[\d.]+), (?:below|no less than) (?P<limit>[\d.]+)"
            ),
            _chance,
        ),
        (r"Preflight \(\w+\): of (?P<count>\d+) passages none is beyond place \d+", _few),
        (
            (
                r"Doubling: not calibrated, the issue is no reason for BriefContext, and too likely for a few passages: "
                rf"(?P<dose>.+), in one call{_END}"
            ),
            _unsure,
        ),
        (
            (
                r"Doubling: less likely than (?P<sure>[\d.]+), the issue is not worth BriefContext, and too likely for a few "
                rf"passages: (?P<dose>.+), in one call{_END}"
            ),
            _doubtful,
        ),
        (rf"Doubling: (?P<dose>.+), each if the one before is refused{_END}", _ladder),
        (
            (
                r"Doubling: (?P<tried>\d+) of (?P<all>\d+) passages were read, and the reply was a refusal to the last: "
                r"BriefContext over all\."
            ),
            _again,
        ),
        (
            (
                r"Search: (?P<tried>\d+) passages were read(?:, and the reply was a refusal to the last| without an answer that a quote supports): "
                r"(?P<more>\d+) others\."
            ),
            _searched,
        ),
        (r"Money: \$(?P<worst>\S+) at worst, of \$(?P<left>\S+) that are left\.", _paid),
        (
            (
                r"Money: \$(?P<left>\S+) are left, too little at worst for (?P<dear>.+): stepped down to (?P<dose>.+), "
                r"\$(?P<worst>\S+)\."
            ),
            _dear,
        ),
        (
            r"Money: \$(?P<left>\S+) are left, too little at worst for (?P<dear>.+): declined\.",
            _declined,
        ),
    )
)
