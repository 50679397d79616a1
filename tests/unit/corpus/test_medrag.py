from __future__ import annotations

import json

import pytest

from posology.corpus.record import RecordError, of_medrag, parse
from posology.types import Passage


def chunk(**fields: object) -> Passage:
    said = {"title": "Salt", "content": "Salt helps.", "contents": "Salt. Salt helps."}
    return parse(json.dumps(said | fields).encode())


def test_a_chunk_of_pubmed() -> None:
    assert chunk(id="pubmed23n0001_7", PMID=31) == Passage(
        id="pubmed23n0001_7",
        text="Salt helps.",
        title="Salt",
        pmid="31",
        source="medrag:pubmed",
        parent="pmid:31",
    )


def test_a_chunk_of_pubmed_without_its_number_has_no_parent() -> None:
    assert chunk(id="pubmed23n0001_7").parent is None


def test_a_chunk_of_statpearls() -> None:
    found = chunk(id="article-100_12", title="Hyponatremia -- Treatment -- Acute")
    assert found.title == "Hyponatremia"
    assert found.section == "Treatment > Acute"
    assert (found.parent, found.source) == ("article-100", "medrag:statpearls")
    assert chunk(id="article-100_0", title="Hyponatremia").section is None


def test_a_chunk_of_wikipedia() -> None:
    found = chunk(id="wiki20220301en000_5", wiki_id="12", paragraph_id=5)
    assert (found.parent, found.source) == ("wikipedia:12", "medrag:wikipedia")
    assert chunk(id="wiki20220301en000_5", wiki_id=12) == found
    assert chunk(id="wiki20220301en000_5").parent is None


def test_a_chunk_of_a_textbook_is_part_of_no_article() -> None:
    found = chunk(id="Anatomy_Gray_3", title="Anatomy_Gray")
    assert (found.parent, found.source, found.text) == (None, None, "Salt helps.")


def test_what_a_line_says_itself_stays() -> None:
    found = chunk(id="article-100_12", source="mine", section="s")
    assert (found.source, found.parent, found.section) == ("mine", "article-100", "s")


def test_only_lines_with_contents_are_chunks() -> None:
    line = {"id": "article-100_12", "title": "A -- B", "content": "Salt."}
    found = parse(json.dumps(line).encode())
    assert (found.title, found.parent, found.text) == ("A -- B", None, "Salt.")


def test_text_counts_before_content_and_content_before_contents() -> None:
    assert chunk(id="a", text="Water.").text == "Water."
    assert parse(b'{"id": "a", "contents": "Both."}').text == "Both."


@pytest.mark.parametrize("content", ["", " ", None, 3])
def test_a_chunk_without_words_is_a_bad_record(content: object) -> None:
    with pytest.raises(RecordError):
        chunk(id="pubmed23n0001_7", content=content)


@pytest.mark.parametrize("page", [None, True, "", "a", [1], {"a": 1}])
def test_an_odd_number_of_a_page_is_none(page: object) -> None:
    passage = Passage(id="wiki20220301en000_5", text="Salt.")
    assert of_medrag(passage, wiki_id=page).parent is None


@pytest.mark.parametrize(
    ("title", "retracted"),
    [
        ("RETRACTED: Salt in the elderly.", True),
        ("[Retracted] Salt in the elderly.", True),
        ("Retracted articles on salt: a survey.", False),
    ],
)
def test_a_title_of_pubmeds_tells_that_it_was_retracted(title: str, retracted: bool) -> None:
    assert chunk(id="pubmed23n0001_0", content="So.", title=title, PMID=7).retracted is retracted
