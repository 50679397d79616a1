from __future__ import annotations

import json

import pytest

from posology.corpus.record import MAX_ID, RecordError, parse


def line(**fields: object) -> bytes:
    return json.dumps({"id": "pmid:1", "text": "Aspirin works."} | fields).encode()


def test_every_field_is_read() -> None:
    passage = parse(
        line(
            title="A trial",
            pmid=123,
            journal="The Lancet",
            year="1999",
            publication_types=["Randomized Controlled Trial"],
            mesh=["Aspirin", "Humans"],
            retracted=True,
            source="medline",
            unknown={"deep": [1]},
        )
    )
    assert passage.id == "pmid:1"
    assert passage.title == "A trial"
    assert passage.pmid == "123"
    assert passage.journal == "The Lancet"
    assert passage.year == 1999
    assert passage.publication_types == ("Randomized Controlled Trial",)
    assert passage.mesh == ("Aspirin", "Humans")
    assert passage.retracted
    assert passage.source == "medline"


def test_publication_types_are_also_found_under_medlines_name() -> None:
    assert parse(line(**{"publication types": ["Review"]})).publication_types == ("Review",)


@pytest.mark.parametrize(
    ("doi", "pmcid", "pmid"),
    [
        ("https://doi.org/10.1000/ABC", "pmc12", "0034"),
        ("doi: 10.1000/aBc ", "12", 34),
        ("10.1000/abc", "PMC12", "34"),
    ],
)
def test_identifiers_are_written_as_notices_of_retraction_name_them(
    doi: str, pmcid: str, pmid: object
) -> None:
    passage = parse(line(doi=doi, pmcid=pmcid, pmid=pmid))
    assert (passage.doi, passage.pmcid, passage.pmid) == ("10.1000/abc", "PMC12", "34")
    nothing = parse(line(doi="", pmcid=" ", pmid=""))
    assert (nothing.doi, nothing.pmcid, nothing.pmid) == (None, None, None)


@pytest.mark.parametrize(
    ("published", "date", "year"),
    [("2020-05-01", "2020-05-01", 2020), ("May 2020", "2020-05", 2020), ("soon", "soon", None)],
)
def test_a_date_without_a_year_gives_it(published: str, date: str, year: int | None) -> None:
    """A passage without one is left out of every search that is limited by years."""
    found = parse(json.dumps({"id": "a", "text": "b", "published": published}).encode())
    assert (found.published, found.year) == (date, year)
    both = parse(
        json.dumps({"id": "a", "text": "b", "published": "2020-05", "year": 2019}).encode()
    )
    assert both.year == 2019


def test_null_is_absent() -> None:
    nothing = dict.fromkeys(
        ("title", "pmid", "journal", "year", "publication_types", "mesh", "retracted", "source")
    )
    assert parse(line(**nothing)) == parse(line())


def test_the_text_is_kept_as_it_is() -> None:
    text = "  Two\tspaces, naïve μg \U0001f48a.\n "
    assert parse(line(text=text)).text == text


def test_accents_are_composed() -> None:
    given = {
        "text": "Sjo\u0308gren",
        "title": "Mu\u0308ller",
        "journal": "Zu\u0308rich",
        "mesh": ["Me\u0301nie\u0300re"],
    }
    found = parse(line(**given))
    assert (found.text, found.title, found.journal, found.mesh) == (
        "Sjögren",
        "Müller",
        "Zürich",
        ("Ménière",),
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "not JSON: EOF while parsing an object at column 1"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"text": "x"}', "id: is missing"),
        (b'{"id": "a"}', "text: is missing"),
        (line(id=3), "id: input should be a valid string"),
        (line(id=""), "id: must not be empty, or begin or end with white space"),
        (line(id="a\nb"), "id: must not hold control characters"),
        (line(id="a" * (MAX_ID + 1)), "id: string should have at most 512 characters"),
        (line(text=" \n"), "text: must not be empty"),
        (line(text="a\0b"), "text: must not hold a NUL character"),
        (line(title=["a"]), "title: input should be a valid string"),
        (line(pmid="PMC12"), "pmid: must be a PubMed identifier: digits, as a number or a string"),
        (line(pmid=True), "pmid: must be a PubMed identifier: digits, as a number or a string"),
        (line(year=99), "year: must be a year of four digits"),
        (line(year=1999.0), "year: must be a year of four digits"),
        (line(mesh="Aspirin"), "mesh: input should be a valid array"),
        (line(mesh=["Aspirin", 1]), "mesh.1: input should be a valid string"),
        (line(retracted="no"), "retracted: input should be a valid boolean"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(content: bytes, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse(content)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    "content",
    [
        b'{"id": "a", "text": "\\ud800"}',
        b'{"id": "a", "text": "\xff"}',
        b'{"id": "a", "text": "x", "deep": ' + b"[" * 9_999 + b"]" * 9_999 + b"}",
        b'{"id": "a", "text": "x", "big": ' + b"9" * 9_999 + b"}",
    ],
    ids=["lone surrogate", "not UTF-8", "deep nesting", "endless number"],
)
def test_what_json_should_not_be_is_a_bad_record(content: bytes) -> None:
    with pytest.raises(RecordError, match="not JSON"):
        parse(content)


@pytest.mark.parametrize("id_", ["a#1", "a#12"])
def test_a_part_has_the_id_of_its_article(id_: str) -> None:
    assert parse(line(id=id_, parent="a")).parent == "a"


@pytest.mark.parametrize(
    "id_", ["+x:4", "a", "a#0", "a#01", "a#x", "a#", "b#1", "a#1#1", "a#²", "ab#1"]
)
def test_no_other_record_poses_as_a_part_of_an_article(id_: str) -> None:
    with pytest.raises(RecordError, match=r"PARENT#1") as caught:
        parse(line(id=id_, parent="a"))
    assert caught.value.record == id_
