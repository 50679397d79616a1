"""A number that a row of a table has under another heading is marked, and one under its own is not."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from posology.text.quoting.rows import Row, Value, write
from posology.text.sentences import split
from posology.types import Answer, Backing, Difference, Excerpt, Passage, Rule
from prompts.answer import Said
from strategies.citing import state
from strategies.support.check import checked
from strategies.support.rules import failures

ARMS = (
    "Ramipril", "Placebo", "Metformin (n=120)", "Glipizide (n=118)", "CBT", "Usual care", "Warfarin 5 mg", "Apixaban 5 mg",
    "Exercise / Events", "Control / Events", "Intervention group", "Waiting list",
)  # fmt: skip
OUTCOMES = (
    "Mortality at day 28",
    "Stroke",
    "Major bleeding",
    "Readmission",
    "Hypoglycaemia",
    "Falls per 100 persons",
)
#: what an answer says of two arms: of the first the number a, of the second b
FORMS = (
    "{outcome} was {a} with {first} and {b} with {second}.",
    "{outcome} occurred in {a} of the {first} group, versus {b} of the {second} group.",
    "In the {first} group {outcome} was {a}; in the {second} group it was {b}.",
    "With {first}, {a} had {outcome}, compared with {b} with {second}.",
    "{outcome} was {a} and {b} with {first} and {second}, respectively.",
    "{first} lowered {outcome} compared with {second} ({a} versus {b}).",
    "Compared with {second}, {first} lowered {outcome} ({a} vs {b}).",
    "{outcome} was lower with {first} ({a}) than with {second} ({b}).",
    "{first} lowered {outcome} from {b} with {second} to {a}.",
    "{outcome}: {first} {a}, {second} {b} (P = 0.03).",
    "{outcome} was {a} with {first}.",
    "{a} of those on {first} had {outcome}.",
    "With {first}, {outcome} was {a}, an odds ratio of 0.71 (95 % CI 0.52 to 0.97).",
)  # fmt: skip


def bare(arm: str) -> str:
    return arm.partition(" (")[0].partition(" / ")[0].removesuffix(" group")


def cases(count: int) -> Iterator[tuple[str, str, str]]:
    """Yield rows, each with what is so and what is swapped."""
    draw = random.Random(42)
    for place in range(count):
        pair = 2 * draw.randrange(len(ARMS) // 2)
        arms = list(ARMS[pair : pair + 2])
        outcome, form = draw.choice(OUTCOMES), FORMS[place % len(FORMS)]
        low, high = sorted(draw.sample(range(21, 940), 2))
        shown = [f"{one / 10} %" for one in (low, high)]
        if draw.random() < 0.3:
            shown = [f"{one} ({one / 10} %)" for one in (low, high)]
        values = [Value(heading=arm, text=text) for arm, text in zip(arms, shown, strict=True)]
        draw.shuffle(values)
        values += [
            Value(heading="Odds ratio (95 % CI)", text="0.71 (0.52 to 0.97)"),
            Value(heading="P", text="0.03"),
        ]
        row = write(Row(label="Table 2", name=f"Outcome / {outcome}", values=values))
        said = {"outcome": outcome.lower(), "first": bare(arms[0]), "second": bare(arms[1])}
        a, b = (f"{one / 10} %" for one in (low, high))
        yield row, form.format(a=a, b=b, **said), form.format(a=b, b=a, **said)


def rules(claim: str, *quotes: str) -> list[Rule]:
    return [one.rule for one in failures(claim, quotes, "\n\n".join(quotes))]


def test_of_many_tables_every_swapped_number_is_marked_and_no_other() -> None:
    made = list(cases(260))
    missed = [(row, claim) for row, _, claim in made if Rule.COLUMN not in rules(claim, row)]
    false = [(row, claim) for row, claim, _ in made if Rule.COLUMN in rules(claim, row)]
    assert (missed, false) == ([], [])


@pytest.mark.parametrize(
    ("claim", "right"),
    [
        ("Mortality was 12.1 % with ramipril.", True),
        ("Mortality was 15.3 % with ramipril.", False),
        ("Ramipril: 12.1 % died, and with placebo 15.3 % died.", True),
        ("Mortality was 12.1 % versus 15.3 % with placebo.", True),
        ("Mortality was 15.3 % versus 12.1 % with placebo.", False),
        ("Compared with placebo, mortality was 12.1 %.", True),
        ("Placebo was inferior to ramipril, with a mortality of 15.3 %.", True),
        ("12.1 % (40 of 330) died with ramipril, and 15.3 % (50 of 327) with placebo.", True),
        ("15.3 % (40 of 330) died with ramipril, and 12.1 % (50 of 327) with placebo.", False),
        ("Ramipril lowered mortality by 3.2 %.", True),
        ("Deaths were 12.1 % in one arm and 15.3 % in the other.", True),
        ("Mortality was 15.3 % in patients who were randomised to ramipril.", False),
    ],
)
def test_numbers_go_to_the_heading_that_a_reader_gives_them_to(claim: str, right: bool) -> None:
    row = "Table 2, row Mortality: Ramipril (n=330): 12.1 %; Placebo (n=327): 15.3 %; Difference: 3.2 %."
    assert (Rule.COLUMN not in rules(claim, row)) is right


ROWS = (
    "Table 3, row Ramipril 5 mg: Mortality, %: 12.1; Stroke, %: 3.4.",
    "Table 3, row Placebo: Mortality, %: 15.3; Stroke, %: 4.9.",
)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Mortality was 12.1 % with ramipril and 15.3 % with placebo.", []),
        ("Mortality was 15.3 % with ramipril and 12.1 % with placebo.", [Rule.COLUMN]),
        ("With ramipril, mortality was 12.1 % and stroke occurred in 3.4 %.", []),
        ("With ramipril, mortality was 3.4 % and stroke occurred in 12.1 %.", [Rule.COLUMN]),
        # the unit of a column is its number's
        ("Stroke occurred in 3.4 mg with ramipril.", [Rule.NUMBER]),
        # the number of a table is no number of its row
        ("Stroke occurred in 3 trials.", [Rule.NUMBER]),
    ],
)
def test_rows_that_are_arms(claim: str, expected: list[Rule]) -> None:
    assert rules(claim, *ROWS) == expected


def test_prose_beside_a_row_may_state_its_numbers_otherwise() -> None:
    row = "Table 2, row Deaths: Ramipril: 12; Placebo: 15."
    claim = "There were 15 deaths with ramipril."
    assert rules(claim, row, "In all, 15 deaths were counted with ramipril at one year.") == []
    (found,) = failures(claim, ["Ramipril: 12; Placebo: 15"], row)
    assert found == Difference(rule=Rule.COLUMN, said="15 for Ramipril", quoted="12")
    assert str(found) == "the quote says 12, the sentence 15 for Ramipril"


def test_a_swapped_number_costs_its_row_the_citation() -> None:
    text = "Table 2. Deaths.\n\nTable 2, row Deaths: Ramipril: 12.1 %; Placebo: 15.3 %."
    passage = Passage(id="n:1", text=text, title="A trial of ramipril")
    excerpt = Excerpt(passage=passage, sentences=split(text))
    for claim, backing in (
        ("Deaths were 12.1 % with ramipril.", Backing.SUPPORTED),
        ("Deaths were 15.3 % with ramipril.", Backing.UNSUPPORTED),
    ):
        stated = state([Said(text=claim, sentences=["1.3"])], [excerpt])
        answer = Answer(
            text=stated.text,
            choice=None,
            citations=stated.verified.citations,
            dropped_quotes=0,
            strategy="direct",
            statements=stated.statements,
        )
        support = checked(answer, {passage.id: excerpt}, "How many died?", lambda: None).support
        assert support is not None
        (one,) = support.sentences
        assert one.backing is backing
        assert bool(one.citations) is (backing is Backing.SUPPORTED)
        assert [found.rule for found in one.differences] == [Rule.COLUMN] * (not one.citations)
