"""Authors, journals, trials and drugs that no passage has."""

from __future__ import annotations

import pytest

from posology.types import Passage
from strategies.support.inventions import Shown, invented
from tests.support.growth import MOST, growth

SHOWN = Shown.of(
    [
        Passage(
            id="pmid:1",
            pmid="28657417",
            title="Aspirin versus placebo in pregnancies at high risk",
            text=(
                "In the ASPRE trial (ISRCTN13633058), magnetic resonance imaging was done in 40 women. Acetaminophen was "
                "allowed. Müller et al. reported less. Human immunodeficiency virus was rare."
            ),
            authors=("Rolnik, Daniel L", "Wright, David"),
            journal="N Engl J Med",
            year=2017,
            trials=("NCT01206062",),
        ),
        Passage(id="pmid:2", text="Heparin did not help.", authors=("Roberge, S",)),
    ],
    "Does low-dose labetalol help in the MOMS trial?",
)


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("The study by Wang et al. (2013) found less.", ["Wang et al. (2013)"]),
        ("Smith and Jones (2015) found less.", ["Smith and Jones (2015)"]),
        ("Less was found (Hansen & Berg, 2011).", ["Hansen & Berg, 2011"]),
        ("Smith and Jones showed that it helps.", ["Smith and Jones"]),
        ("A review by Dr. Chen says so.", ["Chen"]),
        ("O'Brien and colleagues agree.", ["O'Brien and colleagues"]),
        # an author of a passage, with a year that is not its own
        ("Rolnik et al. (2013) found less.", ["Rolnik et al. (2013)"]),
        ("The SPRINT trial found less.", ["SPRINT trial"]),
        ("In the DAPA-HF study it helped.", ["DAPA-HF study"]),
        ("The Framingham Heart Study agrees.", ["Framingham Heart Study"]),
        ("It is registered (NCT99999999).", ["NCT99999999"]),
        ("It was published in the Annals of Surgery.", ["Annals of Surgery"]),
        ("As The Lancet says, it helps.", ["Lancet"]),
        ("Ramipril helps.", ["ramipril"]),
        # gaps that a model left
        ("The study by [author] et al. (2010) found less.", ["[author] et al. (2010)"]),
        ("It helps [Author, Year].", ["[Author, Year]"]),
        ("Less was found in [journal name].", ["[journal name]"]),
        ("According to <author's name>, it helps.", ["<author's name>"]),
    ],
)
def test_what_no_passage_names_is_found(sentence: str, found: list[str]) -> None:
    assert list(invented(sentence, SHOWN)) == found


@pytest.mark.parametrize(
    "sentence",
    [
        "Rolnik et al. (2017) found less.",
        "Rolnik and Wright (2017) found less.",
        "Muller et al. found less.",
        # the year of this passage is unknown
        "Roberge et al. (2012) found less.",
        "The New England Journal of Medicine has it.",
        "In the ASPRE trial, NCT01206062, it helped.",
        # the question names them
        "The MOMS trial gave labetalol.",
        # letters that begin words of a passage, and common ones
        "The MRI study and the HIV study agree, as does the RCT study.",
        "Paracetamol was allowed, as were antibiotics and insulin.",
        "In May (2012), Women and Men were asked. A Randomized Controlled Trial was done.",
        "Vitamin D and IL-6 were measured in the USA.",
        "This Pilot Study found less.",
    ],
)
def test_what_passages_or_the_question_name_and_ordinary_capitals_are_not(sentence: str) -> None:
    assert invented(sentence, SHOWN) == ()


@pytest.mark.parametrize(
    "part", ["Aa ", "Aa and ", "A-", "A", "(Aa, ", "van ", "O'", "Aa of the ", "10.1234/"]
)
def test_the_time_grows_with_the_sentence(part: str) -> None:
    assert growth(lambda n: invented(part * n, SHOWN), 500) < MOST
