"""Study records of ClinicalTrials.gov: what becomes of their fields, and what of records that are broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from posology.corpus.clinicaltrials.reader import MAX_BYTES
from posology.corpus.documents.grid import MAX_ROWS
from posology.corpus.files import kind_of, read
from posology.corpus.folders import expand, skipped
from posology.corpus.items import Notice, NoticeKind, Parts, Record, Remark
from posology.errors import BadFile, BadRecord
from posology.index.schema import own_flags
from posology.testing.literature.studies import STUDIES, counts, groups, measured, study
from posology.text.quoting.rows import Row
from posology.text.quoting.rows import read as row_of
from posology.text.sentences import split
from posology.types import FlagKind, Passage
from strategies.support.columns import swapped


def _read(tmp_path: Path, content: object) -> list[Any]:
    path = tmp_path / "studies.json"
    path.write_text(json.dumps(content))
    return list(read(path))


def _passages(items: list[Any]) -> list[Passage]:
    return [item.passage for item in items if isinstance(item, Record)]


def _rows(passages: list[Passage]) -> list[Row]:
    spans = [(passage.text, span) for passage in passages for span in split(passage.text)]
    return [row for text, span in spans if (row := row_of(span.of(text)))]


def _outcome(**fields: Any) -> dict[str, Any]:
    measure = {"type": "PRIMARY", "title": "Pain", "groups": groups("OG", "Salt", "Sand")} | fields
    return study(
        "NCT90000009", "T", results={"outcomeMeasuresModule": {"outcomeMeasures": [measure]}}
    )


@pytest.fixture
def passages(tmp_path: Path) -> list[Passage]:
    return _passages(_read(tmp_path, STUDIES[0]))


def test_a_record_is_an_article_with_its_own_type(passages: list[Passage]) -> None:
    (first, *_) = passages
    assert {one.parent for one in passages} == {"nct:NCT90000001"}
    assert first.trials == ("NCT90000001",)
    assert first.publication_types == ("Trial Registry Record", "Randomized Controlled Trial")
    assert (first.source, first.journal) == ("clinicaltrials", "ClinicalTrials.gov")
    assert (first.published, first.year, first.mesh) == ("2022-05-02", 2022, ("Gout",))
    assert first.authors == ("Stub Institute",)
    text = "\n".join(one.text for one in passages)
    for said in (
        "Status of the study: completed.",
        "Arm Stubazole 20 mg (experimental): One tablet a day; Drug: Stubazole.",
        "Planned primary outcome: Change in Serum Urate [Baseline to week 26].",
        "* Serum urate >= 7 mg/dL",
        "Outcome 1, analysis 1 (Stubazole 20 mg and Placebo): Mean Difference (Final Values) -2.1, 95 % CI -2.4 to",
        "-1.8, P <0.001, ANCOVA, superiority.",
        "Outcome 4: no data are posted.",
        "Few women took part.",
    ):
        assert said in text


def test_every_value_names_its_arm(passages: list[Passage]) -> None:
    rows = {
        (row.label, row.name): {v.heading: v.text for v in row.values} for row in _rows(passages)
    }
    flares = "Number of Participants With a Gout Flare [26 weeks]"
    arms = ("Stubazole 20 mg", "Placebo")
    for where, *values in (
        ("Participant flow|Overall Study / Started", "101", "99"),
        ("Participant flow|Overall Study / Not completed / Lost to Follow-up", "7", "11"),
        (
            "Baseline characteristics|Mean (Standard deviation), years / Age, Continuous",
            "54.2 (11.3)",
            "53.8 (10.9)",
        ),
        ("Outcome 1|Participants analysed", "94", "88"),
        (
            "Outcome 1|Mean (Standard Deviation), mg/dL / Change in Serum Urate [Baseline to week 26]",
            "-2.4 (1.1)",
            "-0.3 (0.9)",
        ),
        # of those analysed, by the class's own number if it has one
        (f"Outcome 2|Count of participants / {flares} / Week 13", "14 of 101", "31 of 99"),
        (f"Outcome 2|Count of participants / {flares} / Week 26", "9 of 94", "26 of 88"),
        (
            "Outcome 3|Median (95% Confidence Interval), days / Time to First Flare [26 weeks]",
            "NA (the median was not reached)",
            "118 (97 to 141)",
        ),
        ("Adverse events|Deaths from any cause", "0 of 101", "1 of 99"),
        ("Adverse events|Participants with serious adverse events", "6 of 101", "5 of 99"),
    ):
        label, _, name = where.partition("|")
        assert rows[label, name] == dict(zip(arms, values, strict=True)), name


def test_numbers_of_the_other_arm_are_marked(passages: list[Passage]) -> None:
    rows = [row for row in _rows(passages) if "Week 26" in row.name and row.label == "Outcome 2"]
    right = "At week 26, 9 of 94 with stubazole and 26 of 88 with placebo had a flare."
    wrong = "At week 26, 26 of 88 with stubazole and 9 of 94 with placebo had a flare."
    assert not list(swapped(right, rows, ""))
    assert list(swapped(wrong, rows, ""))


@pytest.mark.parametrize(
    ("number", "kind", "said"),
    [
        (1, FlagKind.TERMINATION, "terminated. Why it stopped: Slow accrual."),
        (2, FlagKind.WITHDRAWAL, "withdrawn. Why it stopped: No funding."),
    ],
)
def test_each_part_of_a_stopped_study_says_why(
    tmp_path: Path, number: int, kind: FlagKind, said: str
) -> None:
    found = _passages(_read(tmp_path, STUDIES[number]))
    assert found
    for passage in found:
        assert passage.text.startswith(f"Status of the study: {said}")
        assert [flag.kind for flag in own_flags(passage)] == [kind]
        assert not passage.retracted


def test_a_plan_is_no_trial_of_a_level(tmp_path: Path) -> None:
    (planned,) = _passages(_read(tmp_path, STUDIES[2]))
    assert planned.publication_types == ("Trial Registry Record", "Withdrawn Trial")
    assert "No results are posted." in planned.text


def test_a_retracted_publication_is_a_notice(tmp_path: Path) -> None:
    (notice,) = [one for one in _read(tmp_path, list(STUDIES)) if isinstance(one, Notice)]
    assert (notice.target, notice.kind) == ("pmid:90000003", NoticeKind.RETRACTION)
    assert notice.by == "nct:NCT90000001#1"


def test_what_is_not_given_is_no_value(tmp_path: Path) -> None:
    events = {
        "eventGroups": [
            {"id": "EG000", "title": "Salt", "deathsNumAffected": 0, "deathsNumAtRisk": 0}
        ]
    }
    found = _outcome(classes=[measured("", OG000={"value": "3"}, OG001={})])
    found["resultsSection"]["adverseEventsModule"] = events
    rows = _rows(_passages(_read(tmp_path, found)))
    assert [[(v.heading, v.text) for v in row.values] for row in rows] == [[("Salt", "3")]]


def test_arms_of_one_name_stay_apart(tmp_path: Path) -> None:
    found = _outcome(
        groups=groups("OG", "Salt", "Salt"),
        classes=[measured("", OG000={"value": "3"}, OG001={"value": "4"})],
    )
    (row,) = _rows(_passages(_read(tmp_path, found)))
    assert [one.heading for one in row.values] == ["Salt (OG000)", "Salt (OG001)"]


def test_tables_are_bounded_and_what_is_left_out_is_counted(tmp_path: Path) -> None:
    classes = [measured(f"Week {n}", OG000={"value": str(n)}) for n in range(MAX_ROWS + 5)]
    items = _read(tmp_path, _outcome(classes=classes, denoms=counts("OG", "1", "2")))
    (bad,) = [one for one in items if isinstance(one, Remark)]
    assert "part of a table that is too large" in bad.reason
    assert isinstance(items[-1], Remark)


@pytest.mark.parametrize(
    "record",
    [
        {"protocolSection": {}},
        {"protocolSection": {"identificationModule": {"nctId": "NCT1"}}},
        {"protocolSection": []},
        {"studies": [5]},
    ],
)
def test_a_record_without_a_number_is_named(tmp_path: Path, record: Any) -> None:
    good = STUDIES[2]
    path = tmp_path / "a.json"
    path.write_text(json.dumps([good, *record.get("studies", [record])]))
    bad = [one for one in read(path) if isinstance(one, BadRecord | BadFile)]
    assert [type(one) for one in bad] == [BadRecord]


def test_fields_of_other_types_are_blank(tmp_path: Path) -> None:
    record = study(
        "NCT90000008",
        "T\x00\ud800 \\<5",
        descriptionModule={"briefSummary": ["x"]},
        designModule={"phases": "PHASE1", "designInfo": 5, "enrollmentInfo": [1]},
        referencesModule={"references": {"pmid": 1}},
        results={
            "outcomeMeasuresModule": {"outcomeMeasures": [None, {"groups": 4, "classes": "a"}]}
        },
    )
    items = _read(tmp_path, record)
    assert [one for one in items if isinstance(one, Remark | BadRecord | BadFile)] == []
    assert _passages(items)[0].title == "T <5"
    assert isinstance(items[-1], Parts)


@pytest.mark.parametrize(
    "content",
    [
        b'{"protocolSection": {',
        b'[{"protocolSection": ' + b"[" * 200_000,
        b'{"protocolSection":\xff}',
    ],
)
def test_a_broken_file_is_one_fault(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    (bad,) = read(path)
    assert isinstance(bad, BadFile)


def test_a_file_too_large_for_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.write(b'{"protocolSection": {}')
        file.truncate(MAX_BYTES + 1)
    (bad,) = read(path)
    assert isinstance(bad, BadFile)
    assert "download fewer studies" in bad.reason


def test_other_json_is_no_literature(tmp_path: Path) -> None:
    other, good = tmp_path / "a.json", tmp_path / "b.json"
    other.write_text('{"name": "settings"}')
    good.write_text(json.dumps(STUDIES[2]))
    assert kind_of(other) is None
    assert list(expand([tmp_path])) == [good]
    (left,) = skipped([tmp_path])
    assert left.path == other
    assert "one record per line" in left.reason
