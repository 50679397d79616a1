"""Roles of sentences in published forms."""

import numpy as np
import pytest

from orchestrator.question.passages import passage_output
from orchestrator.question.report import evidence
from posology.text.sentences import split
from posology.types import Citation, Passage, Retrieved, SentenceRole

TEXT = "Asthma is common. We gave salbutamol. It helped."
ROLES = (SentenceRole.BACKGROUND, SentenceRole.METHODS, SentenceRole.RESULTS)


def retrieved(roles: tuple[SentenceRole, ...] | None) -> Retrieved:
    return Retrieved(
        passage=Passage(id="pmid:1", text=TEXT),
        sentences=split(TEXT),
        vector=np.zeros(2, np.float32),
        sentence_vectors=np.zeros((3, 2), np.int8),
        roles=roles,
    )


@pytest.mark.parametrize(
    ("quote", "roles", "role"),
    [
        ("salbutamol. It", ROLES, SentenceRole.METHODS),
        ("It helped.", ROLES, SentenceRole.RESULTS),
        ("It helped.", None, None),
    ],
)
def test_a_citation_has_the_role_of_the_sentence_in_which_it_begins(
    quote: str, roles: tuple[SentenceRole, ...] | None, role: SentenceRole | None
) -> None:
    start = TEXT.index(quote)
    cited = Citation(passage_id="pmid:1", quote=quote, start=start, end=start + len(quote))
    (found,) = evidence([cited], {"pmid:1": retrieved(roles).excerpt()})
    assert found.role == role


@pytest.mark.parametrize("roles", [ROLES, None])
def test_a_passage_lists_its_sentences_with_their_roles(
    roles: tuple[SentenceRole, ...] | None,
) -> None:
    found = passage_output(retrieved(roles), index="index@1")
    assert [TEXT[s.start : s.end] for s in found.sentences] == [s.of(TEXT) for s in split(TEXT)]
    assert [s.role for s in found.sentences] == list(roles or [None] * 3)
