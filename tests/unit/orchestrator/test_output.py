"""Answers and searches in every format."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import rispy
import typer
from bibtexparser.entrypoint import parse_string
from bibtexparser.middlewares.names import split_multiple_persons_names
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from orchestrator.cli.output.formats import OutputOptions
from orchestrator.cli.terminal import show_answer
from orchestrator.question.passages import SNIPPET, snippet
from orchestrator.question.report import unread
from orchestrator.rendering.citations import bibtex, citations, csl, ris
from orchestrator.rendering.evidence import table
from orchestrator.rendering.exports import export_answer, export_rows
from orchestrator.rendering.kinds import Format
from orchestrator.rendering.markdown import answer_as_markdown, escaped
from orchestrator.rendering.sources import answer_text, cited, link, mark, notices, verdict
from orchestrator.rendering.text import answer_as_text, search_as_text
from orchestrator.rendering.words import safe
from posology.corpus.references.latex import plain_of
from posology.published.answers import (
    AskOutput,
    DifferenceOutput,
    Evidence,
    Ranked,
    SentenceSupportOutput,
    Source,
    Status,
    SupportOutput,
)
from posology.published.calls import ErrorBody
from posology.published.decisions import DecisionOutput
from posology.published.jobs import BatchRow
from posology.published.literature import Found, SearchOutput
from posology.text.sentences import split
from posology.types import (
    Backing,
    Coverage,
    Dose,
    Flag,
    FlagKind,
    JobState,
    Passage,
    Retrieved,
    Rule,
    Rung,
)
from tests.support.answers import an_answer

WORDS = st.text(
    st.characters(exclude_categories=("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")), max_size=40
)


def source(name: str = "pmid:1", **given: Any) -> Source:
    facts: dict[str, Any] = {
        "pmid": "1", "title": "A title", "journal": "J Trials", "year": 2015,
        "publication_types": (), "retracted": False, "source": None,
    }  # fmt: skip
    return Source(id=name, **facts | given)


def quote(of: Source, start: int, words: str) -> Evidence:
    return Evidence(
        passage=of, start=start, end=start + len(words), quote=words, context_start=start - 5,
        context=f"Then {words} So.",
    )  # fmt: skip


def ranked(of: Source) -> Ranked:
    return Ranked(passage=of, dense=1, bm25=1, fused=1, dense_score=1, bm25_score=1, fused_score=1)


ONE, TWO, THREE = source("pmid:1"), source("pmid:2", pmid="2"), source("pmid:3", pmid="3")


def answer(**given: Any) -> AskOutput:
    fields: dict[str, Any] = {
        "status": Status.ANSWERED,
        "model": "openai:x",
        "answer": "It does [pmid:2]. Others say so [pmid:1; pmid:3], [sic].",
        "evidence": (quote(TWO, 10, "It did."), quote(ONE, 20, "Yes."), quote(TWO, 40, "Again.")),
        "retrieved": tuple(map(ranked, (ONE, TWO, THREE))),
    }
    return an_answer(**fields | given)


def test_the_answer_and_its_sources_have_one_numbering() -> None:
    out = answer()
    assert [(one.number, one.source.id, len(one.evidence)) for one in cited(out)] == [
        (1, "pmid:2", 2),
        (2, "pmid:1", 1),
    ]
    assert answer_text(out) == "It does [1]. Others say so [2, pmid:3], [sic]."


def test_the_offline_readers_quotes_are_not_called_an_answer() -> None:
    out = answer(model="offline:extractive", answer="“It did.” [pmid:2]")
    text = answer_as_text(out)
    assert "Passages found (no language model read them)" in text
    assert "answered" not in text
    assert text.count("It did.") == 1
    assert not out.judged
    leaning = answer(model="offline:extractive", answer="The passages lean yes. “It did.” [pmid:2]")
    assert answer_text(leaning) == "The passages lean yes."
    assert "answered" in answer_as_text(answer())


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({}, 3),
        ({"decision": DecisionOutput(dose=Dose(strategy="direct", passages=2), policy="", reason="")}, 2),
        ({"rungs": (Rung(passages=1, first=1, usage=None, refused=False),)}, 2),
        ({"rungs": (Rung(passages=1, first=0, usage=None, refused=True),),
          "coverage": Coverage(partitions=1, found=1, empty=0, failed=0, calls=2)}, 3),
    ],
)  # fmt: skip
def test_the_footer_counts_the_passages_that_calls_showed(given: dict[str, Any], read: int) -> None:
    out = answer(**given)
    assert out.read == read
    shown = "3 passages read" if read == 3 else f"{read} of 3 passages read"
    assert shown in answer_as_text(out)


def test_a_pipe_gets_no_boxes_and_a_terminal_does() -> None:
    console = Console(file=io.StringIO(), width=40)
    show_answer(console, answer())
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == answer_as_text(answer())
    assert not set("│╭╮╰╯─\x1b") & set(console.file.getvalue())
    boxed = Console(file=io.StringIO(), width=40, force_terminal=True)
    show_answer(boxed, answer())
    assert isinstance(boxed.file, io.StringIO)
    assert "╭" in boxed.file.getvalue()


def test_the_link_is_the_best_known() -> None:
    assert link(ONE) == "https://pubmed.ncbi.nlm.nih.gov/1/"
    known = source(pmid=None, pmcid="PMC7", doi="10.1/a")
    assert link(known) == "https://pmc.ncbi.nlm.nih.gov/articles/PMC7/"
    assert link(source(pmid=None, doi="10.1/a<b>#c")) == "https://doi.org/10.1/a%3Cb%3E%23c"
    assert link(source(pmid=None)) is None


@given(title=WORDS, journal=WORDS)
def test_ris_is_read_back(title: str, journal: str) -> None:
    one = source(title=title, journal=journal or None, doi="10.1/x_y", published="2015-07")
    two = source("pmid:9", pmid="9")
    back = rispy.loads(ris([one, two]))
    assert len(back) == 2
    assert back[0].get("title", "") == " ".join(title.split())
    assert back[0]["doi"] == "10.1/x_y"
    assert back[0]["year"] == "2015"
    assert back[1]["accession_number"] == "9"


@given(title=WORDS, journal=WORDS)
def test_bibtex_is_read_back(title: str, journal: str) -> None:
    one = source(title=title, journal=journal, doi="10.1/x{y")
    library = parse_string(bibtex([one, source("pmid:9", pmid="9"), one]))
    assert not library.failed_blocks
    assert [entry.key for entry in library.entries] == ["pmid_1", "pmid_9", "pmid_1_2"]
    fields = library.entries[0].fields_dict
    assert fields["year"].value == "2015"
    assert fields["doi"].value == "10.1/x%7By"
    if title.strip():
        assert plain(fields["title"].value) == " ".join(title.split())


@given(
    title=WORDS, journal=st.sampled_from(["J}\n@article{evil, title={x}}", "{{J", "J\\}", "{J}"])
)
def test_no_brace_of_a_field_closes_an_entry_of_bibtex(title: str, journal: str) -> None:
    written = bibtex([source(title=title + "}", journal=journal, authors=("Be}ll, A", "{Group"))])
    depth = 0
    for sign in written.strip():
        # BibTeX counts those behind a backslash, too
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0
    (entry,) = parse_string(written).entries
    # and this project's own reader finds the braces again
    assert plain_of(entry.fields_dict["journal"].value) == " ".join(journal.split())


def plain(tex: str) -> str:
    """Undo the escapes, one at a time from the left."""
    found = tex.strip()[1:-1]
    names = {"textbackslash{}": "\\", "textasciitilde{}": "~", "textasciicircum{}": "^",
             "textbraceleft{}": "{", "textbraceright{}": "}"}  # fmt: skip
    text, at = "", 0
    while at < len(found):
        if found[at] != "\\":
            text, at = text + found[at], at + 1
            continue
        name = next((name for name in names if found.startswith(name, at + 1)), None)
        text += names[name] if name else found[at + 1]
        at += 1 + len(name) if name else 2
    return text


NAMES = ("Müller, Ann B.", "Salt & Sand Group", "et al.")


def test_authors_are_cited_in_every_format() -> None:
    one = source(authors=NAMES)
    assert rispy.loads(ris([one]))[0]["authors"] == list(NAMES[:2])
    library = parse_string(bibtex([one]))
    assert library.entries[0].fields_dict["author"].value == (
        r"Müller, Ann B. and {Salt \& Sand Group} and others"
    )
    (back,) = json.loads(csl([one]))
    assert back["author"] == [
        {"family": "Müller", "given": "Ann B."},
        {"literal": "Salt & Sand Group"},
        {"literal": "et al."},
    ]
    assert "Müller AB et al., J Trials 2015, PMID 1" in answer_as_text(
        answer(evidence=(quote(one, 10, "It did."),))
    )
    assert "(Müller AB et al., J Trials 2015, PMID 1)" in answer_as_markdown(
        answer(evidence=(quote(one, 10, "It did."),))
    )


@given(
    st.lists(
        WORDS.map(lambda text: " ".join(text.replace(",", " ").split())).filter(bool), max_size=4
    )
)
def test_authors_are_read_back_from_bibtex(names: list[str]) -> None:
    library = parse_string(bibtex([source(authors=tuple(names))]))
    assert not library.failed_blocks
    found = library.entries[0].fields_dict.get("author")
    assert (0 if found is None else len(split_multiple_persons_names(found.value))) == len(names)


def test_keys_of_bibtex_differ_in_more_than_case() -> None:
    written = bibtex([source(one) for one in ("smith-2020", "smith_2020", "Smith_2020_2")])
    keys = [entry.key for entry in parse_string(written).entries]
    assert keys == ["smith_2020", "smith_2020_2", "Smith_2020_2_2"]


def test_a_note_of_bibtex_is_escaped() -> None:
    flag = Flag(kind=FlagKind.RETRACTION, source="watch_a & co #1", by=None, date=None)
    (entry,) = parse_string(bibtex([source(flags=(flag,), retracted=True)])).entries
    assert r"watch\_a \& co \#1" in entry.fields_dict["note"].value


def test_csl_has_the_year_of_a_date_that_is_none() -> None:
    (back,) = json.loads(csl([source(published="May 2020", year=2020)]))
    assert back["issued"] == {"date-parts": [[2020]]}


def test_csl_has_what_is_known_and_nothing_else() -> None:
    known = source(published="2015-07-05", doi="10.1/a")
    (back,) = json.loads(csl([known]))
    assert back["issued"] == {"date-parts": [[2015, 7, 5]]}
    assert back["container-title"] == "J Trials"
    (bare,) = json.loads(csl([source(pmid=None, year=None, journal=None)]))
    assert bare == {"id": "pmid:1", "type": "document", "title": "A title"}


def test_parts_of_one_article_are_one_citation() -> None:
    parts = [source(f"PMC1#{n}", parent="PMC1") for n in range(3)]
    listed = json.loads(citations([parts[0], TWO, *parts], Format.CSL))
    assert [one["id"] for one in listed] == ["PMC1", "pmid:2"]
    assert citations((), Format.RIS) == citations((), Format.BIBTEX) == ""
    assert json.loads(citations((), Format.CSL)) == []


@given(WORDS)
def test_markdown_shows_text_as_it_is(text: str) -> None:
    (block,) = [t for t in MarkdownIt().parse(f"x {escaped(text)}") if t.type == "inline"]
    assert block.children is not None
    shown = "".join(t.content for t in block.children)
    assert all(t.type in ("text", "text_special") for t in block.children)
    assert shown == f"x {' '.join(text.split())}".strip()


@pytest.mark.parametrize("text", ["- a", "1. a", "12) a", "# a", "> a", "+ a", "=== a", "*a*"])
def test_markdown_never_begins_a_block(text: str) -> None:
    tokens = MarkdownIt().parse(escaped(text))
    assert [t.type for t in tokens] == ["paragraph_open", "inline", "paragraph_close"]


def test_markdown_of_an_answer_is_a_list_of_sources_with_quotes() -> None:
    text = answer_as_markdown(answer())
    assert "[A title](<https://pubmed.ncbi.nlm.nih.gov/2/>)" in text
    assert "It does [1]." in text
    kinds = [token.type for token in MarkdownIt().parse(text)]
    assert kinds.count("list_item_open") == 2
    assert kinds.count("blockquote_open") == 3


def test_json_excludes_another_format() -> None:
    assert OutputOptions(as_json=True).chosen() is Format.JSON
    assert OutputOptions(as_json=True, format=Format.JSON).chosen() is Format.JSON
    assert OutputOptions().chosen() is Format.TEXT
    with pytest.raises(typer.BadParameter):
        OutputOptions(as_json=True, format=Format.RIS).chosen()


def paged(page: int | None, last: int | None = None) -> AskOutput:
    of = source("file:a.pdf#1", pmid=None, parent="file:a.pdf", page=page, last_page=last)
    item = quote(of, 5, "It did.").model_copy(update={"page": page, "last_page": last})
    return answer(evidence=(item,), retrieved=(ranked(of),))


@pytest.mark.parametrize(
    ("page", "last", "shown"), [(3, 3, "p. 3"), (3, 4, "pp. 3–4"), (7, None, "p. 7")]
)
def test_a_quote_has_its_page_in_every_format(page: int, last: int | None, shown: str) -> None:
    out = paged(page, last)
    assert f"“It did.” ({shown})\n" in answer_as_text(out)
    assert f"> It did. ({shown})\n" in answer_as_markdown(out)
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    show_answer(console, out)
    drawn = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert drawn.count(shown) == 1
    wanted = f"quoted from {shown} of the file"
    assert f"N1  - {wanted}\n" in citations(out.evidence, Format.RIS)
    assert f"note = {{{wanted}}}" in citations(out.evidence, Format.BIBTEX)
    assert json.loads(citations(out.evidence, Format.CSL))[0]["note"] == wanted


def test_a_quote_that_ocr_read_says_so() -> None:
    out = paged(3, 3)
    item = out.evidence[0].model_copy(update={"ocr": True})
    assert "“It did.” (p. 3, read by OCR)" in answer_as_text(
        out.model_copy(update={"evidence": (item,)})
    )


def test_pages_of_one_article_are_named_once_in_its_citation() -> None:
    first, again, other = paged(3, 3), paged(3, 3), paged(9, 9)
    quotes = (*first.evidence, *again.evidence, *other.evidence)
    assert citations(quotes, Format.RIS).count("N1  - quoted from p. 3, p. 9 of the file\n") == 1


def test_without_pages_nothing_is_shown() -> None:
    out = paged(None)
    for text in (answer_as_text(out), answer_as_markdown(out), citations(out.evidence, Format.RIS)):
        assert "p. " not in text
        assert "quoted" not in text
    assert json.loads(out.model_dump_json())["evidence"][0]["page"] is None


def found(name: str, *, dense: int | None, bm25: int | None, snippet: str = "It helped.") -> Found:
    return Found(
        passage=source(name), dense=dense, bm25=bm25, fused=1, dense_score=dense and 0.5,
        bm25_score=bm25 and 2.0, fused_score=0.1, snippet=snippet,
    )  # fmt: skip


def searched(*hits: Found, bm25: tuple[str, ...], **given: Any) -> SearchOutput:
    fields: dict[str, Any] = {
        "dense": ("a", "b"),
        "bm25_rerank": (),
        "fused": ("a", "b"),
        "seconds": 0.1,
    }
    return SearchOutput(
        query="q", mode="fused", k=2, hits=hits, bm25=bm25, index="i@1", **fields | given
    )


def test_a_search_shows_a_sentence_of_each_passage_and_says_what_a_missing_place_means() -> None:
    beyond = searched(found("a", dense=None, bm25=1), bm25=("c", "d"), added=("salt",))
    text = search_as_text(beyond)
    assert "    It helped.\n" in text
    assert "dense > 2  bm25 1 (2.000)" in text
    assert "! > 2: not among the first 2 of that ranking" in text
    assert "! BM25 also searched for: salt" in text
    unshared = search_as_text(searched(found("a", dense=1, bm25=None), bm25=("c",)))
    assert "dense 1 (0.500)  bm25 –" in unshared
    assert "! bm25 –: the passage shares no word with the query." in unshared
    assert "> 2" not in unshared
    whole = search_as_text(searched(found("a", dense=1, bm25=1), bm25=("a",)))
    assert "!" not in whole


@given(
    st.lists(st.integers(-127, 127), min_size=3, max_size=3),
    st.sampled_from(["One here. Two there. Three at last.", "word " * 200]),
)
def test_the_snippet_is_the_nearest_sentence(scores: list[int], text: str) -> None:
    sentences = split(text)
    vectors = np.array(scores[: len(sentences)], np.int8)[:, None]
    one = Retrieved(
        passage=Passage(id="a", text=text), sentences=sentences, vector=np.ones(1, np.float32),
        sentence_vectors=vectors,
    )  # fmt: skip
    shown = snippet(one, np.ones(1, np.float32))
    assert len(shown) <= SNIPPET
    best = sentences[int(np.argmax(vectors))].of(text)
    assert best.startswith(shown.removesuffix(" …"))
    without = replace(one, sentence_vectors=np.empty((0, 1), np.int8))
    assert (
        sentences[0]
        .of(text)
        .startswith(snippet(without, np.ones(1, np.float32)).removesuffix(" …"))
    )


HOSTILE = '=HYPERLINK("https://evil.example";"x")\n|<img src=x>\u202e, "q" '


def answered(*quotes: Evidence) -> AskOutput:
    return answer(evidence=quotes)


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_an_evidence_table_has_a_row_for_each_quote() -> None:
    bad = source("pmid:2", pmid="2", title=HOSTILE, retracted=True, authors=("Doe, J", "et al."))
    out = answered(
        quote(ONE, 5, "It helps."), quote(bad, 0, "-5 points."), quote(ONE, 20, "A lot.")
    )
    rows = read_csv(export_answer(out, Format.CSV))
    assert [(row["source"], row["quote"], row["start"]) for row in rows] == [
        ("1", "It helps.", "5"),
        ("1", "A lot.", "20"),
        ("2", "'-5 points.", "0"),
    ]
    assert rows[2]["standing"] == "RETRACTED"
    assert rows[2]["authors"] == "Doe, J; et al."
    assert rows[2]["title"] == "'" + '=HYPERLINK("https://evil.example";"x") |<img src=x>, "q"'
    assert rows[0]["url"] == "https://pubmed.ncbi.nlm.nih.gov/1/"
    parsed = MarkdownIt("commonmark").enable("table").parse(export_answer(out, Format.TABLE))
    cells = [token for token in parsed if token.type in ("th_open", "td_open")]
    assert len(cells) == (1 + len(rows)) * len(rows[0])
    inner = [child.type for token in parsed for child in token.children or ()]
    assert not {"html_inline", "image", "link_open"} & set(inner)


def test_what_has_no_quotes_is_one_row() -> None:
    out = answered().model_copy(update={"status": Status.REFUSED, "answer": None, "refusal": "No."})
    (row,) = read_csv(export_answer(out, Format.CSV))
    assert (row["status"], row["answer"], row["quote"]) == ("refused", "No.", "")


@given(st.lists(st.text(max_size=30), min_size=4, max_size=4))
def test_no_cell_of_a_table_begins_a_formula_or_ends_its_row(texts: list[str]) -> None:
    names = ("a", "b", "c", "d")
    made = table(names, [tuple(texts)], Format.CSV)
    (row,) = csv.reader(io.StringIO(made.partition("\r\n")[2], newline=""), strict=True)
    assert [cell.removeprefix("'") for cell in row] == [
        " ".join(safe(text).split()).removeprefix("'") for text in texts
    ]
    assert not [cell for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert len(table(names, [tuple(texts)], Format.TABLE).splitlines()) == 3


def test_rows_of_a_batch_say_what_became_of_them() -> None:
    out = answered(quote(ONE, 5, "It helps."))
    error = ErrorBody(type="InvalidQuery", message="?", exit_code=3, details={}, spending=None)
    rows = [
        BatchRow(row=0, id="a", job="job_1", state=JobState.SUCCEEDED, result=out, error=None),
        BatchRow(row=1, id=None, job=None, state=None, result=None, error=error),
        BatchRow(row=2, id=None, job="job_3", state=JobState.QUEUED, result=None, error=None),
    ]
    found = read_csv(export_rows(rows, Format.CSV))
    assert [(row["row"], row["id"], row["status"], row["quote"]) for row in found] == [
        ("0", "a", "answered", "It helps."),
        ("1", "", "InvalidQuery", ""),
        ("2", "", "queued", ""),
    ]
    assert "row,id" not in export_rows(rows, Format.CSV, header=False)


def test_passages_that_were_not_read_whole_are_named() -> None:
    whole, partly = Passage(id="a", text="Took 5 mg."), Passage(id="b", text="Took 5 �g.")
    assert unread([whole]) == ()
    (remark,) = unread([whole, partly])
    assert "files: b." in remark


def test_pages_that_were_not_read_are_counted_once_for_each_document() -> None:
    def part(name: str, pages: int | None) -> Passage:
        return Passage(id=f"{name}#1", parent=name, text="Salt helps.", unread_pages=pages)

    some = [part("a", 2), replace(part("a", 2), id="a#2"), part("b", 0), part("c", None)]
    (remark,) = unread(some)
    assert remark.startswith("Pages that could not be read: 2 of a.")


@pytest.mark.parametrize(
    ("pages", "shown"),
    [(2, "2 of its pages not read"), (1_200, "1,200 of its"), (0, ""), (None, "")],
)
def test_a_quote_says_how_many_pages_of_its_document_were_not_read(
    pages: int | None, shown: str
) -> None:
    out = paged(3)
    (item,) = out.evidence
    of = item.passage.model_copy(update={"unread_pages": pages})
    out = out.model_copy(update={"evidence": (item.model_copy(update={"passage": of}),)})
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    show_answer(console, out)
    drawn = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    for text in (answer_as_text(out), answer_as_markdown(out), drawn):
        assert ("not read" in text) is bool(shown)
        assert shown in text


@pytest.mark.parametrize(
    ("backing", "evidence", "failed", "words", "shown"),
    [
        (Backing.SUPPORTED, (0,), (), (), ""),
        # a judge's word alone, of this version and of older ones
        (Backing.UNCLEAR, (0,), (), (), ""),
        (Backing.CONTRADICTED, (0,), (), (), ""),
        (Backing.UNSUPPORTED, (0,), (Rule.SUBJECT,), (), ""),
        (Backing.UNSUPPORTED, (), (), (), " (no quote behind it)"),
        (Backing.UNCLEAR, (0,), (Rule.NUMBER,), ("no quote says 5 mg",), " (no quote says 5 mg)"),
        # stored before differences had words
        (
            Backing.CONTRADICTED,
            (0,),
            (Rule.NUMBER, Rule.NAME),
            (),
            " (differs from its quotes: number)",
        ),
    ],
)
def test_a_sentence_is_marked_by_what_rules_found_and_not_by_a_judges_doubt(
    backing: Backing,
    evidence: tuple[int, ...],
    failed: tuple[Rule, ...],
    words: tuple[str, ...],
    shown: str,
) -> None:
    one = SentenceSupportOutput(
        start=0, end=1, backing=backing, probability=0.1, evidence=evidence, failed=failed, disagrees=False,
        differences=tuple(DifferenceOutput(rule=Rule.NUMBER, said="", quoted="", words=said) for said in words),
    )  # fmt: skip
    assert mark(one) == shown


def test_a_verdict_that_the_words_gainsay_is_marked_in_the_text() -> None:
    out = answer(answer="Yes, it does.", choice="no", worded="yes")
    assert verdict(out) == "no (its words say yes)"
    assert "no (its words say yes)  Yes, it does." in answer_as_text(out)


def backed(*backings: Backing) -> AskOutput:
    text = " ".join(f"It is {place}." for place, _ in enumerate(backings))
    places = [(one.start, one.end) for one in split(text)]
    sentences = tuple(
        SentenceSupportOutput(
            start=start, end=end, backing=backing, probability=0.5, evidence=(0,), failed=(), disagrees=False
        )
        for backing, (start, end) in zip(backings, places, strict=True)
    )  # fmt: skip
    support = SupportOutput(judge="judge", sentences=sentences, unsupported=0, removed=0)
    return answer(answer=text, support=support)


@pytest.mark.parametrize(("backings", "which"), [
    ((Backing.UNCLEAR,), "this"),
    ((Backing.UNCLEAR, Backing.UNCLEAR), "this"),
    ((Backing.SUPPORTED, Backing.UNCLEAR), "sentence 2 of 2"),
    ((Backing.UNCLEAR, Backing.SUPPORTED, Backing.UNCLEAR, Backing.UNCLEAR), "sentences 1, 3 and 4 of 4"),
    ((Backing.SUPPORTED,), None),
])  # fmt: skip
def test_sentences_that_nothing_confirms_are_named(
    backings: tuple[Backing, ...], which: str | None
) -> None:
    out = backed(*backings)
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    show_answer(console, out)
    drawn = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    for text in (answer_as_text(out), answer_as_markdown(out), drawn):
        assert ("Not confirmed" in text) is (which is not None)
        if which is not None:
            assert f"Not confirmed: whether the quotes say {which}. Read them." in text
    reader = out.model_copy(update={"model": "offline:extractive"})
    assert notices(reader) == reader.notes
