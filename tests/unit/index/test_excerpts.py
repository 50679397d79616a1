import numpy as np
import pytest

from posology.text.sentences import split
from posology.types import Passage, Retrieved, Sentence, SentenceRole

TEXT = "Asthma is common. We gave salbutamol. It helped."
AIM, METHODS, RESULTS = SentenceRole.AIM, SentenceRole.METHODS, SentenceRole.RESULTS


def retrieved(roles: tuple[SentenceRole, ...] | None) -> Retrieved:
    return Retrieved(
        passage=Passage(id="pmid:1", text=TEXT),
        sentences=split(TEXT),
        vector=np.zeros(2, np.float32),
        sentence_vectors=np.zeros((3, 2), np.int8),
        roles=roles,
    )


def test_an_excerpt_shows_all_sentences_with_their_roles() -> None:
    found = retrieved((AIM, METHODS, RESULTS)).excerpt()
    assert [s.of(TEXT) for s in found.sentences] == TEXT.replace(". ", ".|").split("|")
    assert found.roles == (AIM, METHODS, RESULTS)


@pytest.mark.parametrize(
    ("wanted", "roles"),
    [(["It helped."], (RESULTS,)), (["gave", "helped"], (METHODS, RESULTS)), ([], ())],
)
def test_parts_of_sentences_have_the_roles_of_these(
    wanted: list[str], roles: tuple[SentenceRole, ...]
) -> None:
    spans = [Sentence(start=TEXT.index(w), end=TEXT.index(w) + len(w)) for w in wanted]
    found = retrieved((AIM, METHODS, RESULTS)).excerpt(spans, summary="Short.")
    assert (found.sentences, found.roles, found.summary) == (tuple(spans), roles, "Short.")


def test_roles_are_unknown_where_the_index_has_none() -> None:
    assert retrieved(None).excerpt().roles is None
