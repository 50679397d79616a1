import pytest

from posology.text.roles.headings import allowed, headings, named_roles, stated
from posology.text.sentences import split
from posology.types import SentenceRole as R


@pytest.mark.parametrize(
    ("heading", "roles"),
    [
        ("OBJECTIVE", {R.AIM}),
        ("Background and aims", {R.BACKGROUND, R.AIM}),
        ("MEASUREMENTS AND MAIN RESULTS", {R.METHODS, R.RESULTS}),
        ("DESIGN, SETTING, AND PARTICIPANTS", {R.METHODS}),
        ("CONCLUSIONS/INTERPRETATION", {R.CONCLUSION}),
        ("TRIAL IDENTIFICATION NUMBER", set()),
        ("FUNDING SOURCES", set()),
        ("Statins", set()),
    ],
)
def test_headings_name_roles(heading: str, roles: set[R]) -> None:
    assert named_roles(heading) == roles


def test_an_opening_section_may_hold_background_and_aim() -> None:
    both = frozenset({R.BACKGROUND, R.AIM})
    assert allowed(frozenset({R.AIM})) == allowed(frozenset({R.BACKGROUND})) == both
    assert allowed(frozenset({R.RESULTS})) == {R.RESULTS}


def test_headings_are_found_in_capitals_after_sentences_and_at_beginnings_of_lines() -> None:
    text = (
        "BACKGROUND: Asthma is common.METHODS: We gave it. HIV-1: a virus. RESULTS: It helped.\n"
        "Conclusions: Give it. TRIAL REGISTRATION: NCT01."
    )
    found = [(text[h.start : h.end].strip(), set(h.roles)) for h in headings(text)]
    assert found == [
        ("BACKGROUND:", {R.BACKGROUND}),
        ("METHODS:", {R.METHODS}),
        ("RESULTS:", {R.RESULTS}),
        ("Conclusions:", {R.CONCLUSION}),
        ("TRIAL REGISTRATION:", set()),
    ]


def test_a_heading_holds_until_the_next_one() -> None:
    text = "Asthma is common. METHODS: We gave it. Doses rose. RESULTS: It helped."
    found = stated(text, split(text))
    assert [set(one.allowed) for one in found] == [set(), {R.METHODS}, {R.METHODS}, {R.RESULTS}]
    assert [text[one.start :][:4] for one in found] == ["Asth", "We g", "Dose", "It h"]


@pytest.mark.parametrize(
    ("section", "roles"),
    [
        ("Methods > Results of the pilot", {R.METHODS}),
        ("Results and discussion", set()),
        ("Introduction", {R.BACKGROUND, R.AIM}),
        ("Discussion", set()),
        ("Conclusion", {R.RESULTS, R.CONCLUSION}),
        ("5. Conclusions", {R.RESULTS, R.CONCLUSION}),
        ("Discussion and conclusions", set()),
        ("Salbutamol", set()),
        (None, set()),
    ],
)
def test_the_part_of_an_article_says_what_its_sentences_may_be(
    section: str | None, roles: set[R]
) -> None:
    text = "We measured it. It rose."
    assert [set(one.allowed) for one in stated(text, split(text), section)] == [roles, roles]
