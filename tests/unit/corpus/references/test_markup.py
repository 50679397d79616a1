"""Publishers' markup in abstracts, as any format holds it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.corpus import files
from posology.corpus.items import Record, Remark
from posology.corpus.references.markup import remarks, unmarked
from posology.types import UNREADABLE
from tests.support.growth import MOST, growth

MATH = '<mml:math xmlns:mml="http://www.w3.org/1998/Math/MathML"><mml:mfrac><mml:mn>1</mml:mn><mml:mn>2</mml:mn></mml:mfrac></mml:math>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<jats:p>It did <jats:italic>not</jats:italic> fall.</jats:p>", "It did not fall."),
        ("<ns0:p>It did <ns0:bold>not</ns0:bold> fall.</ns0:p>", "It did not fall."),
        ('<p style="a: b;"><span lang="EN">It fell&nbsp;(p&lt;0.05).</span></p>', "It fell\xa0(p<0.05)."),
        ("&lt;p&gt;It did &lt;i&gt;not&lt;/i&gt; fall.&lt;/p&gt;", "It did not fall."),
        ("&amp;lt;p&amp;gt;p&amp;amp;lt;0.05&amp;lt;/p&amp;gt;", "p<0.05"),
        ("<![CDATA[<p>It fell.</p>]]>", "It fell."),
        ("10<jats:sup>9</jats:sup> cells, CO<sub>2</sub>, m<SUP>2</SUP>", "10^9 cells, CO2, m2"),
        ("<sec><title>Aim</title><p>Salt.</p></sec><h4>Found:</h4><p>Falls.</p>", "Aim: Salt.\nFound: Falls."),
        ("<jats:title>Abstract</jats:title><jats:p>Salt.</jats:p>", "Salt."),
        ("Salt<br/>fell<br>twice <ul><li>a</li><li>b</li></ul>", "Salt\nfell\ntwice\n• a\n• b"),
        ("<table><tr><td>5</td><td>7</td></tr><tr><td>9</td></tr></table>", "5 7\n9"),
        (f"<jats:p>A ratio of <jats:inline-formula>{MATH}</jats:inline-formula>.</jats:p>", "A ratio of 1/2."),
        ('<p>Aged <img src="a.gif" alt="≥"/> 65</p>', "Aged ≥ 65"),
        ('<p>Aged <img src="a.gif"> 65</p>', f"Aged {UNREADABLE} 65"),
        ("<jats:p>A ratio of <jats:inline-formula><jats:graphic/></jats:inline-formula> in all</jats:p>",
         f"A ratio of {UNREADABLE} in all"),
        ("It <del>rose</del><ins>fell</ins>", f"It {UNREADABLE}fell"),
        ("It fell by 10<sup>9 cells", f"It fell by 10{UNREADABLE}9 cells"),
        ('fell<jats:xref ref-type="bibr" rid="b"><jats:sup>1</jats:sup></jats:xref>.', "fell[1]."),
        ("<style>p{a:b}</style>Salt<!-- not --> fell<script>1<2</script>", "Salt fell"),
        ("&ge; 5 &#x3bc;g &#181;g &#0; &foo; AT&T", f"≥ 5 μg µg {UNREADABLE} &foo; AT&T"),
    ],
)  # fmt: skip
def test_known_markup_goes(text: str, words: str) -> None:
    assert unmarked(text) == words
    assert unmarked(words) == words


@pytest.mark.parametrize(
    "text",
    [
        "p<0.05 and n>3",
        "a<b and b>c, i<5, n<p and p>0",
        "x<sup and y>3",
        "n<i>5",
        "to <a@b.org> when <5>",
        "AT&T; R&D, &copy 2019",
        "<drug>Salt</drug>",
        "$10^9$",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert unmarked(text) == text


def test_what_was_not_understood_is_counted() -> None:
    assert list(remarks("p<0.05, <b>c and > d")) == []
    (unknown,) = remarks("<drug>Salt</drug> and <drug>sand</drug>")
    assert "2 tags of unknown kinds" in unknown
    (lost,) = remarks(f"Aged {UNREADABLE} 65")
    assert "1 place could not be read" in lost


@given(st.text("<>/&;ip sup#0x ='\"!-[]", max_size=60) | st.text(max_size=60))
def test_no_text_raises(text: str) -> None:
    unmarked(text)
    list(remarks(text))


@pytest.mark.parametrize(
    "part", ["<i>", "<sup>", "</sup>", "<p>", "&lt;", "<!--", "<![CDATA[", "<math>", "<b a='"]
)
def test_markup_takes_time_in_proportion(part: str) -> None:
    assert growth(lambda size: unmarked(part * size), 500) < MOST


def table(title: str, abstract: str) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([["Title", "Abstract"], [title, abstract]])
    return out.getvalue()


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


#: files of each format, of a title and an abstract
WRITERS: dict[str, Callable[[str, str], str]] = {
    "a.csv": table,
    "a.jsonl": lambda title, text: json.dumps({"id": "a", "title": title, "text": text}),
    "a.ris": lambda title, text: f"TY  - JOUR\nTI  - {title}\nAB  - {text}\nER  - \n",
    "a.bib": lambda title, text: f"@article{{a, title={{{title}}}, abstract={{{text}}}}}",
    "a.nbib": lambda title, text: f"PMID- 7\nTI  - {title}\nAB  - {text}\nSO  - N.\n",
    "a.enw": lambda title, text: f"%0 Journal Article\n%T {title}\n%X {text}\n",
    "a.ciw": lambda title, text: f"FN Web of Science\nVR 1.0\nPT J\nTI {title}\nAB {text}\nER\n",
    "endnote.xml": lambda title, text: (
        f"<xml><records><record><titles><title>{escaped(title)}</title></titles>"
        f"<abstract>{escaped(text)}</abstract></record></records></xml>"
    ),
    "pubmed.xml": lambda title, text: (
        "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>7</PMID><Article>"
        f"<ArticleTitle>{escaped(title)}</ArticleTitle><Abstract><AbstractText>{escaped(text)}</AbstractText></Abstract>"
        "</Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"
    ),
    "jats.nxml": lambda title, text: (
        '<article><front><article-meta><article-id pub-id-type="pmid">7</article-id><title-group><article-title>'
        f"{escaped(title)}</article-title></title-group><abstract><p>{escaped(text)}</p></abstract></article-meta></front>"
        "</article>"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_every_format(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    title, text = (
        "Of <i>salt</i> &amp; sand",
        '<p class="a">It did <b>not</b> fall (p&lt;0.05) at 10<sup>9</sup> cells.</p>',
    )
    path.write_text(WRITERS[name](title, text), encoding="utf-8")
    (record,) = (item for item in files.read(path) if isinstance(item, Record))
    assert record.passage.title == "Of salt & sand"
    assert record.passage.text == "It did not fall (p<0.05) at 10^9 cells."


@pytest.mark.parametrize(
    "name", ["a.csv", "a.ris", "a.nbib", "a.enw", "a.ciw", "endnote.xml", "pubmed.xml"]
)
def test_a_record_that_lost_something_is_read_and_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(WRITERS[name]("Salt", "<p>Aged <img src='a.gif'/> 65.</p>"), encoding="utf-8")
    bad, record = files.read(path)
    assert isinstance(bad, Remark)
    assert "could not be read" in bad.reason
    assert isinstance(record, Record)
    assert record.passage.text == f"Aged {UNREADABLE} 65."
