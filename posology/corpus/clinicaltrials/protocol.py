"""The protocol of a study: what its record says before results, and the article that its passages are parts of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from posology.corpus.clinicaltrials.fields import (
    at,
    capital,
    each,
    lines,
    sentence,
    text,
    texts,
    word,
)
from posology.corpus.pieces import Piece
from posology.corpus.pubmed.dates import best_known, written_date
from posology.types import Passage
from posology.types.flags import STOPPED

#: name of the collection and of the format
SOURCE = "clinicaltrials"
#: what each record is, beside MEDLINE's publication types
RECORD = "Trial Registry Record"
_JOURNAL = "ClinicalTrials.gov"
_NCT = re.compile(r"NCT[0-9]{8}")
_PLANNED = {
    "primaryOutcomes": "Planned primary outcome",
    "secondaryOutcomes": "Planned secondary outcome",
    "otherOutcomes": "Other planned outcome",
}


def number_of(study: Mapping[str, Any]) -> str | None:
    """Return the registration number of a study record; ``None``: it has none."""
    number = text(study, "protocolSection", "identificationModule", "nctId").upper()
    return number if _NCT.fullmatch(number) else None


def article(study: Mapping[str, Any], number: str) -> Passage:
    """Return the article, without a text.

    Args:
        study: the record.
        number: its registration number.
    """
    protocol = at(study, "protocolSection")
    naming = at(protocol, "identificationModule")
    status = at(protocol, "statusModule")
    posted = (
        text(status, "resultsFirstPostDateStruct", "date"),
        text(status, "studyFirstPostDateStruct", "date"),
    )
    date = best_known(written_date(one) for one in posted if one)
    sponsor = text(protocol, "sponsorCollaboratorsModule", "leadSponsor", "name")
    return Passage(
        id=f"nct:{number}",
        text="",
        title=text(naming, "officialTitle") or text(naming, "briefTitle"),
        journal=_JOURNAL,
        year=None if date is None else date.year,
        published=None if date is None else str(date),
        publication_types=tuple(_types(study)),
        mesh=tuple(dict.fromkeys(_meshes(study))),
        source=SOURCE,
        trials=(number,),
        authors=(sponsor,) if sponsor else (),
    )


def _types(study: Mapping[str, Any]) -> Iterator[str]:
    yield RECORD
    protocol = at(study, "protocolSection")
    # a plan is no evidence of a level
    if at(study, "resultsSection"):
        if text(protocol, "designModule", "designInfo", "allocation") == "RANDOMIZED":
            yield "Randomized Controlled Trial"
        elif text(protocol, "designModule", "studyType") == "OBSERVATIONAL":
            yield "Observational Study"
    stopped = f"{capital(word(protocol, 'statusModule', 'overallStatus'))} Trial"
    if stopped in STOPPED:
        yield stopped


def _meshes(study: Mapping[str, Any]) -> Iterator[str]:
    for name in ("conditionBrowseModule", "interventionBrowseModule"):
        yield from (text(one, "term") for one in each(study, "derivedSection", name, "meshes"))


def retracted(study: Mapping[str, Any]) -> Iterator[str]:
    """Yield the PMIDs of a study's publications that its record names as retracted."""
    for one in each(study, "protocolSection", "referencesModule", "references"):
        if any(each(one, "retractions")) and (pmid := text(one, "pmid")).isdecimal():
            yield pmid


def standing(study: Mapping[str, Any]) -> str:
    """Return the status of a study and, if it was stopped, why."""
    status = at(study, "protocolSection", "statusModule")
    said = word(status, "overallStatus") or "unknown"
    if said == "unknown" and (last := word(status, "lastKnownStatus")):
        said = f"unknown, last known as {last}"
    why = text(status, "whyStopped")
    return f"Status of the study: {said}." + (f" Why it stopped: {sentence(why)}" if why else "")


def protocol(study: Mapping[str, Any]) -> Iterator[Piece]:
    """Yield the protocol of a study record, in paragraphs below their headings."""
    part = at(study, "protocolSection")
    yield from _pieces("Overview", _overview(study, part))
    yield from _pieces("Arms and interventions", _arms(at(part, "armsInterventionsModule")))
    yield from _pieces("Planned outcomes", _planned(at(part, "outcomesModule")))
    yield from _pieces("Eligibility", _eligible(at(part, "eligibilityModule")))
    yield from _pieces("Description", lines(part, "descriptionModule", "detailedDescription"))
    yield from _pieces("Publications", _publications(at(part, "referencesModule")))


def _pieces(section: str, said: Iterator[str] | list[str]) -> Iterator[Piece]:
    yield from (Piece(text=one, section=section) for one in said if one)


def _overview(study: Mapping[str, Any], part: object) -> Iterator[str]:
    yield standing(study)
    if not at(study, "resultsSection"):
        yield "No results are posted."
    yield from lines(part, "descriptionModule", "briefSummary")
    design = at(part, "designModule")
    how = at(design, "designInfo")
    enrolled = text(design, "enrollmentInfo", "count")
    masking = at(how, "maskingInfo")
    masked = ", ".join(map(word, at(masking, "whoMasked") or ()))
    facts = {
        "Study type": word(design, "studyType"),
        "Phase": ", ".join(one.replace("PHASE", "phase ") for one in texts(design, "phases")),
        "Allocation": word(how, "allocation"),
        "Model": word(how, "interventionModel") or word(how, "observationalModel"),
        "Masking": word(masking, "masking") + (f" ({masked})" if masked else ""),
        "Purpose": word(how, "primaryPurpose"),
        "Enrolment": enrolled
        and f"{enrolled} participants ({word(design, 'enrollmentInfo', 'type') or 'type unknown'})",
        "Conditions": ", ".join(texts(part, "conditionsModule", "conditions")),
        "Sponsor": text(part, "sponsorCollaboratorsModule", "leadSponsor", "name"),
        "Start": text(part, "statusModule", "startDateStruct", "date"),
        "Primary completion": text(part, "statusModule", "primaryCompletionDateStruct", "date"),
        "Results first posted": text(part, "statusModule", "resultsFirstPostDateStruct", "date"),
    }
    yield " ".join(sentence(f"{name}: {said}") for name, said in facts.items() if said)


def _arms(module: object) -> Iterator[str]:
    for one in each(module, "armGroups"):
        kind = word(one, "type")
        named = f"Arm {text(one, 'label')}" + (f" ({kind})" if kind else "")
        yield _described(
            named, text(one, "description"), ", ".join(texts(one, "interventionNames"))
        )
    for one in each(module, "interventions"):
        named = " ".join(filter(None, (capital(word(one, "type")), text(one, "name"))))
        yield _described(named, text(one, "description"))


def _planned(module: object) -> Iterator[str]:
    for name, kind in _PLANNED.items():
        for one in each(module, name):
            frame = text(one, "timeFrame")
            named = f"{kind}: {text(one, 'measure')}" + (f" [{frame}]" if frame else "")
            yield " ".join(filter(None, map(sentence, (named, text(one, "description")))))


def _eligible(module: object) -> Iterator[str]:
    facts = {
        "Sex": word(module, "sex"),
        "Minimum age": text(module, "minimumAge"),
        "Maximum age": text(module, "maximumAge"),
    }
    yield " ".join(sentence(f"{name}: {said}") for name, said in facts.items() if said)
    yield from lines(module, "eligibilityCriteria")


def _publications(module: object) -> Iterator[str]:
    for one in each(module, "references"):
        # background is another's
        if text(one, "type") in ("RESULT", "DERIVED") and (citation := text(one, "citation")):
            pmid = text(one, "pmid")
            yield sentence(citation) + (f" PMID {pmid}." if pmid else "")


def _described(named: str, *about: str) -> str:
    said = [one for one in about if one]
    return sentence(f"{named}: {'; '.join(said)}" if said else named)
