from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest

from posology.corpus.pdf.blocks import blocks
from posology.corpus.pdf.layout import Line, lines
from posology.corpus.pdf.margins import without_heads
from posology.corpus.pdf.numbering import without_numbers
from posology.corpus.pdf.process import Run, Word, decoded
from posology.corpus.pdfium.places import turned, turns

#: a page of text, whose lines are filled
TEXT = (
    "salt drops were given to adults at home who had fallen",
    "in the year before, and none of them was harmed by any",
    "of the doses. After 12 weeks of the trial, falls were",
    "rarer in the group of salt drops than they were in the",
    "group of plain drops, and so was dizziness on standing",
    "up in the morning. The trial was small, so that others",
)


def word(text: str, x: float, base: float, size: float = 10, turn: float = 0) -> Word:
    """A word in type of even width."""
    width = 0.5 * size * len(text)
    run = Run(
        text=text,
        x0=x,
        x1=x + width,
        top=base - 0.8 * size,
        base=base,
        bottom=base + 0.2 * size,
        size=size,
    )
    return Word(runs=(run,), main=run, bold=False, turn=turn)


def row(text: str, x: float, base: float, size: float = 10, gap: float = 0.5) -> list[Word]:
    """The words of a line, some heights of type from each other."""
    found: list[Word] = []
    for part in text.split():
        found.append(word(part, x, base, size))
        x = found[-1].x1 + gap * size
    return found


def body(texts: Sequence[str] = TEXT, x: float = 100) -> list[Word]:
    return [one for i, text in enumerate(texts) for one in row(text, x, 100 + 12 * i)]


def read(words: Sequence[Word]) -> str:
    return " ".join(line.text for line in lines(words, 1))


def numbers(values: Sequence[str], x: float, size: float = 8) -> list[Word]:
    """Numbers of the lines of :func:`body`, none where one is empty, that end at a place."""
    places = ((text, 100 + 12 * i) for i, text in enumerate(values))
    return [word(text, x - 0.5 * size * len(text), base, size) for text, base in places if text]


def test_numbers_at_even_distances_go_wherever_the_lines_are() -> None:
    ruler = [word(str(i + 1), 60 - 4 * len(str(i + 1)), 90 + 13.7 * i, 8) for i in range(25)]
    (page,) = without_numbers([[*body(TEXT * 4), *ruler]])
    assert read(page) == " ".join(TEXT * 4)


def test_a_number_of_the_text_below_those_of_lines_stays() -> None:
    first = [*body(), *numbers(["1", "2", "3", "4", "5", "6"], 90)]
    second = [*body(), word("81", 90 - 8, 136)]
    assert [len(page) for page in without_numbers([first, second])] == [len(body()), len(second)]


def test_a_stamp_below_the_text_is_no_heading_and_an_initial_is_no_stamp() -> None:
    page = [*body(), word("DRAFT", 120, 400, 60), word("T", 60, 500, 60)]
    asides = [line.text for line in lines(page, 1) if line.aside]
    assert asides == ["DRAFT"]


def test_the_most_frequent_of_near_angles_is_the_direction() -> None:
    found = turns([0.0] * 9 + [0.1, 3.0, 45.0, 45.0, 47.0, 89.9, 358.0])
    assert [found[angle] for angle in (0.1, 3.0, 47.0, 89.9, 358.0)] == [0, 0, 45, 90, 0]


@pytest.mark.parametrize(
    ("turn", "place"), [(0, (3, -4)), (90, (-4, -3)), (180, (-3, 4)), (270, (4, 3))]
)
def test_places_are_those_of_a_page_that_is_turned(turn: float, place: tuple[float, float]) -> None:
    assert turned(3, 4, turn) == pytest.approx(place)


@pytest.mark.parametrize(
    ("text", "font", "shown"),
    [
        ("\uf06d", "ABCDEF+Symbol", "μ"),
        ("\uf0b3\uf0a3", "SymbolMT", "≥≤"),
        ("m", "Symbol", "μ"),
        ("≤", "Symbol", "≤"),
        ("\uf04a", "Wingdings", "�"),
        ("x", "MTExtra", "�"),
        ("\ue06d", "", "�"),
        ("µ²", "", "µ²"),
    ],
)
def test_signs_are_read_by_their_font(text: str, font: str, shown: str) -> None:
    assert decoded(text, font) == shown


@pytest.mark.parametrize(
    ("gap", "text"),
    [(0.5, "placebo-controlled trials halved"), (3.1, "placebo-controlled trials halved")],
)
def test_words_of_a_stretched_line_are_no_cells(gap: float, text: str) -> None:
    assert read([*body(), *row(text, 100, 172, gap=gap)]).endswith(f" {text}")


def test_numbers_at_even_distances_are_cells() -> None:
    cells = [*row("12 13 14", 100, 100, gap=4), *row("15 16 17", 100, 112, gap=4)]
    assert read(cells) == "12 | 13 | 14 15 | 16 | 17"


def test_bare_numbers_of_a_list_are_no_cells() -> None:
    items = [[word("1", 100, 100), *row("take two drops of salt in water", 115, 100)],
             [word("2", 100, 112), *row("take none on the day after that", 115, 112)]]  # fmt: skip
    assert (
        read([word for item in items for word in item])
        == "1 take two drops of salt in water 2 take none on the day after that"
    )


def _line(text: str, page: int, base: float, size: float = 10, *, aside: bool = False) -> Line:
    return Line(
        page=page, column=0, text=text, cells=1, x0=100, x1=400, base=base, size=size, bold=False, first=20, aside=aside
    )  # fmt: skip


def _pages(heads: Sequence[str | None], *, base: float = 20, size: float = 8) -> list[list[Line]]:
    serial = count()
    return [
        [
            *([_line(head, page, base, size)] if head else []),
            *(
                _line(f"Text {chr(97 + next(serial))} goes on", page, 100 + 12 * i)
                for i in range(6)
            ),
        ]
        for page, head in enumerate(heads, start=1)
    ]


def test_what_is_at_another_height_or_in_the_type_of_the_text_is_no_head_of_two_pages() -> None:
    for pages in (
        _pages([None, "Byron et al.", "x", "Byron et al."], size=10),
        [*_pages([None, "Byron et al.", "x"]), *_pages([None] * 3 + ["Byron et al."], base=30)[3:]],
    ):
        assert (
            sum(line.text == "Byron et al." for page in without_heads(pages) for line in page) == 2
        )


def _two(
    heads: Sequence[str], *, base: float = 30, size: float = 10, body: float = 72
) -> list[list[Line]]:
    """Two pages that each begin with one of the heads."""
    pages = _pages([None, None])
    for number, head in enumerate(heads, start=1):
        page = pages[number - 1] = [
            replace(line, base=line.base + body - 100) for line in pages[number - 1]
        ]
        page.insert(0, _line(head, number, base, size))
    return pages


def _left(pages: list[list[Line]], *, foot: bool = False) -> int:
    """The number of pages that keep the line at their edge."""
    if foot:
        # upside down
        pages = [[replace(line, base=800 - line.base) for line in page[::-1]] for page in pages]
    kept = without_heads(pages)
    edges = [page[-1 if foot else 0] for page in pages]
    assert sum(map(len, kept)) >= 12
    return sum(any(line is edge for line in page) for page, edge in zip(kept, edges, strict=True))


@pytest.mark.parametrize(
    "heads", [("Notes on Salt", "Notes on Salt"), ("Salt, page 3 of 12", "Salt, page 4 of 12")]
)
def test_a_document_of_two_pages_has_heads_in_its_margins(heads: Sequence[str]) -> None:
    assert _left(_two(heads)) == 0
    assert _left(_two(heads, base=80, size=8, body=100)) == 0
    assert _left(_two(heads, size=8), foot=True) == 0


@pytest.mark.parametrize(
    "pages",
    [
        # first lines of the text, and those of two letters, with a blank line below
        _two(["Take two drops of salt", "Take no drops of salt"]),
        _two(["Dear colleague,"] * 2, base=60),
        _two(["Dear colleague,"] * 2, base=72, body=120),
        _two(["Dear colleague,"] * 2, base=40, body=64),
        _two(["Salt drops"] * 2, base=46, size=20, body=100),
        _two(["Table S1. Outcomes", "Table S1. Outcomes"], size=8),
        # rows of a table, which are not apart, or differ in more than the page's number
        _two(["Outcome", "Outcome"], base=60, size=8, body=72),
        _two(["Dose 1: 5 mg", "Dose 2: 6 mg"], size=8),
        _two(["Notes 1", "Notes 3"], size=8),
    ],
)
def test_what_two_pages_have_in_common_in_their_text_stays(pages: list[list[Line]]) -> None:
    assert _left(pages) == 2


def test_a_letter_keeps_its_first_line_below_the_head_of_both_pages() -> None:
    pages = _two(["Dear colleague,"] * 2, base=72, body=96)
    for number, page in enumerate(pages, start=1):
        page.insert(0, _line("The Salt Clinic", number, 30))
    kept = without_heads(pages)
    assert [page[0].text for page in kept] == ["Dear colleague,"] * 2


def test_numbers_below_the_second_line_of_a_page_are_none_of_a_head() -> None:
    pages = [
        [
            _line(f"Visit {page}", page, 10),
            *(_line(f"Dose {i}: {page * i} mg", page, 20 + 12 * i) for i in range(1, 9)),
        ]
        for page in (1, 2, 3)
    ]
    assert {line.text for page in without_heads(pages) for line in page} >= {
        "Dose 2: 4 mg",
        "Dose 2: 6 mg",
    }


def test_lines_far_from_each_other_are_a_paragraph() -> None:
    page = [_line(f"line {i} goes", 1, 100 + 24 * i) for i in range(12)]
    page += [_line("another begins", 1, page[-1].base + 40)]
    assert [len(block.lines) for block in blocks([page])] == [12, 1]
