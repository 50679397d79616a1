from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.corpus.pubmed.dates import Date, best_known, date_in
from tests.support.pubmed_xml import article
from tests.unit.corpus.pubmed.files import passage_of


def parts(year: str = "", month: str = "", day: str = "") -> str:
    told = {"Year": year, "Month": month, "Day": day}
    return "".join(f"<{name}>{text}</{name}>" for name, text in told.items() if text)


@pytest.mark.parametrize(
    ("pub_date", "published"),
    [
        (parts("2012"), "2012"),
        (parts("2012", "Jul"), "2012-07"),
        (parts("2012", "July"), "2012-07"),
        (parts("2012", "07"), "2012-07"),
        (parts("2012", "7", "5"), "2012-07-05"),
        (parts("2012", "sept", "05"), "2012-09-05"),
        (parts("2012", "Jul-Aug"), "2012-07"),
        (parts(" 2012 ", " Jul\n", " 5 "), "2012-07-05"),
        ("<Year>2000</Year><Season>Spring</Season>", "2000"),
        # what cannot be
        (parts("2012", "13"), "2012"),
        (parts("2012", "00", "12"), "2012"),
        (parts("2012", "Julember"), "2012"),
        (parts("2012", "Feb", "31"), "2012-02"),
        (parts("2012", "Feb", "0"), "2012-02"),
        (parts("2011", "Feb", "29"), "2011-02"),
        (parts("2012", "Feb", "29"), "2012-02-29"),
        (parts("9999"), None),
        (parts("0000"), None),
        (parts("20121"), None),
        (parts("c2012"), "2012"),
        (parts("c 2012", "May"), "2012-05"),
        ("<MedlineDate></MedlineDate>", None),
        # words
        ("<MedlineDate>1998 Dec-1999 Jan</MedlineDate>", "1998-12"),
        ("<MedlineDate>2000 Spring</MedlineDate>", "2000"),
        ("<MedlineDate>Spring 2000</MedlineDate>", "2000"),
        ("<MedlineDate>1975-1976</MedlineDate>", "1975"),
        ("<MedlineDate>1977-1978 Winter</MedlineDate>", "1977"),
        ("<MedlineDate>2000 Jul-Aug</MedlineDate>", "2000-07"),
        ("<MedlineDate>2000 Dec 23-30</MedlineDate>", "2000-12-23"),
        ("<MedlineDate>1999 Jan 31-Feb 6</MedlineDate>", "1999-01-31"),
        ("<MedlineDate>2000 Feb 31-Mar 2</MedlineDate>", "2000-02"),
        ("<MedlineDate>Dec 1999</MedlineDate>", "1999-12"),
        ("<MedlineDate>12 December 1999</MedlineDate>", "1999-12-12"),
        ("<MedlineDate>1st Quart. 1999</MedlineDate>", "1999"),
        ("<MedlineDate>1984 1st Trimest</MedlineDate>", "1984"),
        ("<MedlineDate>1981-1982 (winter)</MedlineDate>", "1981"),
        ("<MedlineDate>1976-1977 Dec-Jan</MedlineDate>", "1976"),
        ("<MedlineDate>19 Century</MedlineDate>", None),
        ("<MedlineDate>12345 of 1999</MedlineDate>", "1999"),
    ],
)
def test_a_journals_date(tmp_path: Path, pub_date: str, published: str | None) -> None:
    valid = "<Year>" in pub_date or "<MedlineDate>" in pub_date
    passage = passage_of(tmp_path, article(pub_date=pub_date), valid=valid)
    assert passage.published == published
    assert passage.year == (None if published is None else int(published[:4]))


def electronic(year: str, month: str, day: str) -> str:
    return f'<ArticleDate DateType="Electronic">{parts(year, month, day)}</ArticleDate>'


def past(status: str, year: str, month: str = "1", day: str = "2") -> str:
    return f'<PubMedPubDate PubStatus="{status}">{parts(year, month, day)}</PubMedPubDate>'


NONE = "<MedlineDate>?</MedlineDate>"


@pytest.mark.parametrize(
    ("pub_date", "article_dates", "history", "published"),
    [
        # the journal's date is the one that is cited
        (parts("2012", "Mar"), electronic("2011", "12", "20"), "", "2012-03"),
        (parts("2012"), electronic("2011", "12", "20"), "", "2012"),
        # and others say what it leaves open, if they do not contradict it
        (parts("2012"), electronic("2012", "05", "20"), "", "2012-05-20"),
        (parts("2012", "May"), electronic("2012", "05", "20"), "", "2012-05-20"),
        (parts("2012", "May"), electronic("2012", "04", "20"), "", "2012-05"),
        (parts("2012"), "", past("epublish", "2012", "5", "20"), "2012-05-20"),
        # but not the day on which the record came into PubMed
        (parts("2012"), "", past("pubmed", "2012", "5", "20"), "2012"),
        # which is better than nothing
        (NONE, electronic("2012", "05", "20"), past("ppublish", "2013"), "2012-05-20"),
        (NONE, "", past("received", "2010") + past("epublish", "2012", "5", "20"), "2012-05-20"),
        (NONE, "", past("entrez", "2013") + past("pubmed", "2012", "5", "20"), "2012-05-20"),
        (NONE, "", past("received", "2010") + past("accepted", "2011"), None),
        (parts("3012"), electronic("2012", "05", "20"), "", "2012-05-20"),
        (parts("3012"), electronic("2012", "15", "20"), "", "2012"),
    ],
)
def test_of_several_dates(
    tmp_path: Path, pub_date: str, article_dates: str, history: str, published: str | None
) -> None:
    record = article(pub_date=pub_date, article_dates=article_dates, history=history)
    assert passage_of(tmp_path, record).published == published


@given(st.dates(min_value=datetime.date(1600, 1, 1), max_value=datetime.date(2100, 12, 31)))
def test_every_day_is_read_in_words(day: datetime.date) -> None:
    for form in ("%Y %b %d", "%Y %B %d", "%d %b %Y"):
        assert str(date_in(day.strftime(form))) == day.isoformat()
    assert str(date_in(day.strftime("%Y %b"))) == day.isoformat()[:7]


@given(st.text(alphabet=st.sampled_from("0123456789 -/JanFebDec.,SpringWinter"), max_size=30))
def test_any_words_are_a_date_that_can_be_or_none(text: str) -> None:
    date = date_in(text)
    if date is not None:
        padded = str(date) + "-01-01"[: 10 - len(str(date))]
        assert datetime.date.fromisoformat(padded).year == date.year


def test_the_best_known_date_begins_as_the_first() -> None:
    year, month = Date(year=2012), Date(year=2012, month=1)
    day, other = Date(year=2012, month=1, day=9), Date(year=2012, month=2, day=9)
    assert best_known([None, year, other, day]) == other
    assert best_known([None, month, other, day]) == day
    assert best_known([day, other]) == day
    assert best_known([None]) is None
