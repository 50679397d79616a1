"""Posted results of a study: participants, outcome measures and adverse events, each value in a row that names its arm.

The form of rows, and their bounds, are those of other tables (:mod:`posology.corpus.documents.grid`). A value that the
record leaves out is no cell: unknown is never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from posology.corpus.clinicaltrials.fields import at, capital, each, sentence, text, word
from posology.corpus.documents.grid import Grid
from posology.corpus.gaps import SIGNS
from posology.corpus.jats.body import STEP
from posology.corpus.pieces import Piece

#: heading of all results
RESULTS = "Results"
#: stands for rows and cells beyond the bounds of a table
TOO_LARGE = chr(0x10FFF0)
#: signs of the texts here
UNREAD: Mapping[str, str] = {**SIGNS, TOO_LARGE: "part of a table that is too large"}
#: characters of a time frame in the name of a row
_FRAME = 80
_COUNTS = ("COUNT_OF_PARTICIPANTS", "COUNT_OF_UNITS")

#: name of a row, and its values by the id of their arm
_Row: TypeAlias = tuple[str, Mapping[str, str]]


def results(study: Mapping[str, Any]) -> Iterator[Piece]:
    """Yield the results of a study record, each part below its own heading."""
    posted = at(study, "resultsSection")
    yield from _flow(at(posted, "participantFlowModule"))
    yield from _baseline(at(posted, "baselineCharacteristicsModule"))
    for number, outcome in enumerate(each(posted, "outcomeMeasuresModule", "outcomeMeasures"), 1):
        yield from _outcome(outcome, number)
    yield from _events(at(posted, "adverseEventsModule"))
    caveats = text(posted, "moreInfoModule", "limitationsAndCaveats", "description")
    yield from _pieces("Limitations and caveats", [sentence(caveats)])


def _pieces(heading: str, said: Iterable[str]) -> Iterator[Piece]:
    section = STEP.join((RESULTS, heading))
    yield from (Piece(text=one, section=section) for one in said if one)


def _flow(module: object) -> Iterator[Piece]:
    rows: list[_Row] = []
    for period in each(module, "periods"):
        name = text(period, "title") or "Period"
        rows += (
            (f"{name} / {capital(word(one, 'type'))}", _subjects(one, "achievements"))
            for one in each(period, "milestones")
        )
        rows += (
            (f"{name} / Not completed / {capital(word(one, 'type'))}", _subjects(one, "reasons"))
            for one in each(period, "dropWithdraws")
        )
    details = (text(module, name) for name in ("recruitmentDetails", "preAssignmentDetails"))
    table = _table("Participant flow", "", module, "groups", rows)
    yield from _pieces("Participant flow", [*map(sentence, details), *table])


def _subjects(of: object, name: str) -> dict[str, str]:
    return {
        text(one, "groupId"): text(one, "numSubjects") or text(one, "numUnits")
        for one in each(of, name)
    }


def _baseline(module: object) -> Iterator[Piece]:
    label = "Baseline characteristics"
    said = [sentence(text(module, "populationDescription"))]
    said += _table(label, "", module, "groups", _analysed(module))
    for measure in each(module, "measures"):
        # those of the whole, where a measure has none
        denoms = measure if at(measure, "denoms") else module
        said += _table(label, _stub(measure), module, "groups", _measured(measure, denoms))
    yield from _pieces(label, said)


def _outcome(outcome: Mapping[str, Any], number: int) -> Iterator[Piece]:
    label, kind = f"Outcome {number}", word(outcome, "type").replace("pre ", "pre-") or "outcome"
    frame = text(outcome, "timeFrame")
    said = [
        sentence(f"{label}, {kind}: {text(outcome, 'title')}"),
        sentence(text(outcome, "description")),
        sentence(f"Time frame: {frame}") if frame else "",
        sentence(text(outcome, "populationDescription")),
        "" if any(each(outcome, "classes")) else f"{label}: no data are posted.",
        *_table(label, "", outcome, "groups", _analysed(outcome)),
        *_table(label, _stub(outcome), outcome, "groups", _measured(outcome, outcome)),
        *_analyses(outcome, label),
    ]
    yield from _pieces(f"{label} ({kind})", said)


def _stub(measure: object) -> str:
    """Return what the values of a measure are: ``Mean (Standard Deviation), mmHg``."""
    parameter = capital(word(measure, "paramType"))
    spread = text(measure, "dispersionType")
    spread = capital(spread.replace("_", " ").lower()) if spread.isupper() else spread
    if spread and spread.lower() not in ("not applicable", "na"):
        parameter = f"{parameter} ({spread})"
    unit = text(measure, "unitOfMeasure")
    # "Count of participants" says it
    if text(measure, "paramType") in _COUNTS and unit.lower() in parameter.lower():
        return parameter
    return ", ".join(filter(None, (parameter, unit)))


def _analysed(of: object) -> Iterator[_Row]:
    for one in each(of, "denoms"):
        yield f"{capital(text(one, 'units') or 'participants')} analysed", _counts(one)


def _counts(denom: object) -> dict[str, str]:
    return {text(one, "groupId"): text(one, "value") for one in each(denom, "counts")}


def _measured(measure: Mapping[str, Any], whole: object) -> Iterator[_Row]:
    """Yield the rows of a measure; a count is one of the participants or units that were analysed.

    Args:
        measure: an outcome measure or a baseline characteristic.
        whole: has the numbers analysed, where a class has none of its own.
    """
    title, frame = text(measure, "title"), text(measure, "timeFrame")
    if frame and len(frame) <= _FRAME and frame.lower() not in title.lower():
        title = f"{title} [{frame}]"
    for group in each(measure, "classes"):
        own = next(each(group, "denoms"), None)
        of = _counts(own or _denominator(measure, whole))
        name = " / ".join(filter(None, (title, text(group, "title"))))
        counted = text(measure, "paramType") in _COUNTS
        # a count is said with it
        if own is not None and not counted:
            yield f"{name} / {capital(text(own, 'units') or 'participants')} analysed", of
        for category in each(group, "categories"):
            yield (
                " / ".join(filter(None, (name, text(category, "title")))),
                {
                    (arm := text(one, "groupId")): _value(one, of.get(arm, "") if counted else "")
                    for one in each(category, "measurements")
                },
            )


def _denominator(measure: object, whole: object) -> object:
    selected = text(measure, "denomUnitsSelected")
    found = list(each(whole, "denoms"))
    return next((one for one in found if text(one, "units") == selected), None) or next(
        iter(found), None
    )


def _value(measurement: object, of: str) -> str:
    """Return a value with its spread or limits: ``12 of 100``, ``-3.1 (1.2)``, ``5 (4 to 6)``, ``NA (too few events)``."""
    value = text(measurement, "value")
    if not value:
        return ""
    low, high = text(measurement, "lowerLimit"), text(measurement, "upperLimit")
    limits = f"{low or 'NA'} to {high or 'NA'}" if low or high else ""
    about = (text(measurement, "spread") or limits, text(measurement, "comment"))
    counted = f"{value} of {of}" if of and value.isdecimal() else value
    return " ".join((counted, *(f"({one})" for one in about if one)))


def _analyses(outcome: object, label: str) -> Iterator[str]:
    """Yield the comparisons of arms, each as a sentence; an effect belongs to no arm's column."""
    titles = {text(one, "id"): text(one, "title") for one in each(outcome, "groups")}
    for number, analysis in enumerate(each(outcome, "analyses"), 1):
        ids = at(analysis, "groupIds")
        arms = [titles.get(text(arm), "") for arm in ids] if isinstance(ids, list) else []
        compared = f" ({' and '.join(filter(None, arms))})" if any(arms) else ""
        said = (
            " ".join(filter(None, (text(analysis, "paramType"), text(analysis, "paramValue")))),
            _interval(analysis),
            _dispersion(analysis),
            _p(text(analysis, "pValue")),
            text(analysis, "statisticalMethod"),
            word(analysis, "nonInferiorityType"),
        )
        if any(said):
            yield sentence(f"{label}, analysis {number}{compared}: {', '.join(filter(None, said))}")
        for name in (
            "groupDescription",
            "statisticalComment",
            "pValueComment",
            "estimateComment",
            "nonInferiorityComment",
            "otherAnalysisDescription",
        ):
            if comment := text(analysis, name):
                yield sentence(f"{label}, analysis {number}, note: {comment}")


def _interval(analysis: object) -> str:
    low, high = text(analysis, "ciLowerLimit"), text(analysis, "ciUpperLimit")
    if not low and not high:
        return ""
    level = text(analysis, "ciPctValue")
    name = f"{level} % CI" if level else "CI"
    if low and high:
        return f"{name} {low} to {high}"
    return f"{name} from {low}" if low else f"{name} up to {high}"


def _dispersion(analysis: object) -> str:
    value = text(analysis, "dispersionValue")
    return f"{word(analysis, 'dispersionType') or 'dispersion'} {value}" if value else ""


def _p(value: str) -> str:
    if not value:
        return ""
    return f"P {value}" if value[0] in "<>=≤≥" else f"P = {value}"


def _events(module: object) -> Iterator[Piece]:
    label = "Adverse events"
    threshold = text(module, "frequencyThreshold")
    others = f" (in more than {threshold} % of an arm)" if threshold else ""
    names = {
        "deaths": "Deaths from any cause",
        "serious": "Participants with serious adverse events",
        "other": f"Participants with other adverse events{others}",
    }
    rows = [
        (name, {text(one, "id"): _affected(one, kind) for one in each(module, "eventGroups")})
        for kind, name in names.items()
    ]
    frame = text(module, "timeFrame")
    about = (f"Time frame: {frame}" if frame else "", text(module, "description"))
    table = _table(label, "", module, "eventGroups", rows)
    yield from _pieces(label, [*map(sentence, about), *table])


def _affected(group: object, kind: str) -> str:
    number, at_risk = text(group, f"{kind}NumAffected"), text(group, f"{kind}NumAtRisk")
    if at_risk == "0":
        # not assessed
        return ""
    return f"{number} of {at_risk}" if number and at_risk else number


def _table(label: str, stub: str, of: object, name: str, rows: Iterable[_Row]) -> Iterator[str]:
    """Yield rows as sentences.

    Args:
        label: of the table.
        stub: what its values are; empty: the names of rows say so.
        of: has the arms.
        name: of the list of arms, each with an id and a title.
        rows: those without a value are left out.
    """
    from lxml import etree

    arms = {text(one, "id"): text(one, "title") for one in each(of, name)}
    alike = Counter(arms.values())
    table = etree.Element("table")
    head = etree.SubElement(etree.SubElement(table, "thead"), "tr")
    etree.SubElement(head, "th").text = stub
    for arm, title in arms.items():
        named = title if alike[title] == 1 else f"{title} ({arm})"
        etree.SubElement(head, "th").text = named or arm
    body = etree.SubElement(table, "tbody")
    for row, values in rows:
        if not any(values.get(arm) for arm in arms):
            continue
        line = etree.SubElement(body, "tr")
        etree.SubElement(line, "td").text = row
        for arm in arms:
            etree.SubElement(line, "td").text = values.get(arm, "")
    if len(body):
        yield from Grid.read(table, lambda cell: cell.text or "").lines(label, TOO_LARGE)
