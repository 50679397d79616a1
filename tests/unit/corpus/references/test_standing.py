from __future__ import annotations

from pathlib import Path

import pytest

from posology.corpus import files
from posology.corpus.items import Notice, NoticeKind, Record
from posology.corpus.references.standing import notice_of, says_retracted


@pytest.mark.parametrize(
    "title",
    [
        "RETRACTED: Salt for thirst",
        "Retracted: Salt for thirst",
        "[Retracted] Salt for thirst",
        "RETRACTED ARTICLE: Salt for thirst",
        "RETRACTED CHAPTER: Salt for thirst",
        "RETRACTED Salt for thirst",
        "Retracted by the authors: Salt for thirst",
        "WITHDRAWN: Salt for thirst",
        "WITHDRAWN. Salt for thirst",
        "Withdrawn as duplicate: Salt for thirst",
        "REMOVED: Salt for thirst",
        "TEMPORARY REMOVAL: Salt for thirst",
        "RETIRED: Salt for thirst",
        "[Retired] Salt for thirst",
        "Salt for thirst [Retracted]",
        "Salt for thirst (Withdrawn)",
        "Salt for thirst (Retracted article. See vol. 5, pg. 1, 2020)",
        "Salt for thirst. RETRACTED",
    ],
)
def test_titles_of_retracted_articles(title: str) -> None:
    assert says_retracted(title)
    assert notice_of(title) is None


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Retraction: Salt for thirst", NoticeKind.RETRACTION),
        ("RETRACTION: Salt for thirst", NoticeKind.RETRACTION),
        ("Retraction note: Salt for thirst", NoticeKind.RETRACTION),
        ("Retraction notice to “Salt for thirst” [Notes 1 (2019) 2]", NoticeKind.RETRACTION),
        ("Retraction to: Salt for thirst", NoticeKind.RETRACTION),
        ("Notice of retraction: Salt for thirst", NoticeKind.RETRACTION),
        ("Withdrawal: Salt for thirst", NoticeKind.RETRACTION),
        ("Removal notice to: Salt for thirst", NoticeKind.RETRACTION),
        ("Statement of Retraction", NoticeKind.RETRACTION),
        ("Retraction and replacement of: Salt for thirst", NoticeKind.RETRACTION),
        ("Expression of Concern: Salt for thirst", NoticeKind.CONCERN),
        ("Editorial Expression of Concern", NoticeKind.CONCERN),
        ("Salt for thirst (Expression of Concern)", NoticeKind.CONCERN),
    ],
)
def test_titles_of_notices(title: str, kind: NoticeKind) -> None:
    assert notice_of(title) is kind
    assert not says_retracted(title)


@pytest.mark.parametrize(
    "title",
    [
        "",
        "Retraction of the knee",
        "Retracted eyelids in a child",
        "Retracted articles: a survey",
        "Retired: a survey of nurses",
        "Retired nurses and thirst",
        "Withdrawal of salt",
        "Withdrawal symptoms: a review",
        "Withdrawn children at school",
        "Expression of concern about salt among nurses",
        "Removed teeth",
        "Salt (withdrawn in 2010) for thirst",
    ],
)
def test_other_titles(title: str) -> None:
    assert not says_retracted(title)
    assert notice_of(title) is None


RIS = "TY  - JOUR\nTI  - {title}\nAB  - Salt helped.\n{more}ER  - \n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ris", RIS.format(title="Salt", more="M3  - Retracted Publication\n")),
        ("a.ris", RIS.format(title="Salt", more="N1  - Retraction in: Notes. 2020;1:1.\n")),
        ("a.ris", RIS.format(title="WITHDRAWN: Salt", more="")),
        ("a.nbib", "PMID- 7\nTI  - WITHDRAWN: Salt\nAB  - Salt helped.\nSO  - N.\n"),
        ("a.bib", "@article{a, title={{RETRACTED}: Salt}, abstract={Salt helped.}}"),
        ("a.bib", "@article{a, title={Salt}, abstract={Salt helped.}, type={Retracted}}"),
        ("a.enw", "%0 Journal Article\n%T Salt\n%X Salt helped.\n%Z Retracted in: N.\n"),
        ("a.ciw", "PT J\nTI Salt\nAB Salt helped.\nDT Article; Retracted Publication\nER\n"),
        ("a.csv", "Title,Abstract,Document Type\nSalt,Salt helped.,Retracted\n"),
        ("a.csv", "Title,Abstract,Retraction Status\nSalt,Salt helped.,Retracted\n"),
        ("a.csv", "Title,Abstract,Notes\nSalt,Salt helped.,Retraction in: N.\n"),
        ("a.jsonl", '{"id":"a","text":"Salt helped.","title":"RETRACTED: Salt"}\n'),
        ("a.txt", "<1>\nUI  - 7\nTI  - Salt\nAB  - Salt helped.\nCM  - Retraction in: N.\n"),
        ("a.xml", "<xml><records><record><titles><title>Salt [Retracted]</title></titles><abstract>Salt helped.</abstract></record></records></xml>"),
    ],
)  # fmt: skip
def test_formats_without_a_field_for_it(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    (record,) = files.read(path)
    assert isinstance(record, Record)
    assert record.passage.retracted


def test_a_notice_marks_the_article_that_it_names(tmp_path: Path) -> None:
    path = tmp_path / "a.ris"
    title = "Retraction: Salt for thirst (doi: 10.5555/Salt.1)"
    path.write_text(RIS.format(title=title, more="DO  - 10.5555/notice.2\n"), encoding="utf-8")
    notice, record = files.read(path)
    assert isinstance(notice, Notice)
    assert (notice.target, notice.by) == ("doi:10.5555/salt.1", "doi:10.5555/notice.2")
    assert isinstance(record, Record)
    assert record.passage.publication_types == ("Retraction of Publication",)
    assert not record.passage.retracted
