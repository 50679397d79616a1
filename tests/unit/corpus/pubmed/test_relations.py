from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from posology.corpus.items import Record
from tests.support.pubmed_xml import article, comment, document, publication_types
from tests.unit.corpus.pubmed.files import items_of, passage_of, shown

SAME_WORK = (
    "UpdateIn",
    "UpdateOf",
    "RepublishedIn",
    "RepublishedFrom",
    "CorrectedandRepublishedIn",
    "CorrectedandRepublishedFrom",
    "ReprintIn",
    "ReprintOf",
)
ONLY_ABOUT = (
    "AssociatedDataset",
    "AssociatedPublication",
    "Cites",
    "CommentIn",
    "CommentOn",
    "ErratumFor",
    "ErratumIn",
    "OriginalReportIn",
    "SummaryForPatientsIn",
)
RETRACTED, CONCERN, NOTHING = (True, False, ()), (False, True, ()), (False, False, ())


def often(kind: str) -> str:
    """Twice of another record, and of the record itself and of none."""
    return "".join(comment(kind, number) for number in ("2", "2", "1", None))


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ({"comments": comment("RetractionIn", "2")}, RETRACTED),
        ({"comments": comment("RetractionIn", None)}, RETRACTED),
        ({"types": publication_types("Journal Article", "Retracted Publication")}, RETRACTED),
        ({"types": '<PublicationType UI="D016441">Rétractée</PublicationType>'}, RETRACTED),
        ({"types": publication_types("Retraction of Publication")}, NOTHING),
        ({"types": publication_types("Retraction Notice")}, NOTHING),
        ({"types": publication_types("Expression of Concern")}, NOTHING),
        ({"types": publication_types("Preprint")}, NOTHING),
        ({"comments": comment("ExpressionOfConcernIn", "2")}, CONCERN),
        *(({"comments": often(kind)}, (False, False, ("pmid:2",))) for kind in SAME_WORK),
        *(({"comments": comment(kind, "2")}, NOTHING) for kind in ONLY_ABOUT),
    ],
)
def test_what_a_record_knows_of_itself(
    tmp_path: Path, said: dict[str, Any], known: tuple[bool, bool, tuple[str, ...]]
) -> None:
    passage = passage_of(tmp_path, article("1", **said))
    assert (passage.retracted, passage.concern, passage.same_work) == known


def test_a_notice_is_not_retracted_and_reaches_its_article(tmp_path: Path) -> None:
    notice = article(
        "2",
        comments=comment("RetractionOf", "1") + comment("RetractionOf", "7"),
        types=publication_types("Retraction of Publication"),
    )
    items = items_of(tmp_path, document(article("1"), notice))
    assert [shown(item) for item in items] == [
        "1 pmid:1",
        "2 retraction pmid:1 by pmid:2",
        "2 retraction pmid:7 by pmid:2",
        "2 pmid:2",
    ]
    last = items[-1]
    assert isinstance(last, Record)
    assert not last.passage.retracted


def test_a_notice_without_an_abstract_still_warns(tmp_path: Path) -> None:
    notice = article("2", abstract=None, comments=comment("ExpressionOfConcernFor", "1"))
    items = items_of(tmp_path, document(notice, article("3")))
    assert [shown(item) for item in items] == [
        "1 concern pmid:1 by pmid:2",
        "1 bad: has no abstract",
        "2 pmid:3",
    ]


def test_a_retracted_record_without_an_abstract_warns_of_itself(tmp_path: Path) -> None:
    """An index may hold an earlier copy that has one."""
    said = comment("RetractionIn", "9") + comment("ExpressionOfConcernIn", None)
    typed = publication_types("Retracted Publication")
    records = (
        article("1", abstract=None, comments=said),
        article("2", abstract=None, types=typed),
        article("3", abstract=None, comments=comment("RetractionIn", "9"), types=typed),
    )
    assert [shown(item) for item in items_of(tmp_path, document(*records))] == [
        "1 retraction pmid:1 by pmid:1",
        "1 concern pmid:1 by pmid:1",
        "1 bad: has no abstract",
        "2 retraction pmid:2 by pmid:2",
        "2 bad: has no abstract",
        "3 retraction pmid:3 by pmid:3",
        "3 bad: has no abstract",
    ]


def test_a_retracted_record_warns_of_its_copies(tmp_path: Path) -> None:
    """A full text, or another collection's copy, has its number and may not know of it."""
    said = comment("RetractionIn", "9") + comment("ExpressionOfConcernIn", None)
    assert [shown(item) for item in items_of(tmp_path, document(article("1", comments=said)))] == [
        "1 retraction pmid:1 by pmid:1",
        "1 concern pmid:1 by pmid:1",
        "1 pmid:1",
    ]


def test_retracted_and_republished(tmp_path: Path) -> None:
    old = article("1", comments=comment("RetractedandRepublishedIn", "2"))
    new = article("2", comments=comment("RetractedandRepublishedFrom", "1"))
    own, first, warning, second = items_of(tmp_path, document(old, new))
    assert shown(own) == "1 retraction pmid:1 by pmid:1"
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert first.passage.retracted
    assert first.passage.same_work == ("pmid:2",)
    assert shown(warning) == "2 retraction pmid:1 by pmid:2"
    assert not second.passage.retracted
    assert second.passage.same_work == ("pmid:1",)


def test_nothing_warns_of_what_is_no_number_or_of_itself(tmp_path: Path) -> None:
    said = (
        comment("RetractionOf", "x1") + comment("RetractionOf", "2") + comment("RetractionOf", None)
    )
    items = items_of(tmp_path, document(article("2", comments=said)))
    assert [shown(item) for item in items] == ["1 pmid:2"]
