"""The list of faults keeps up with the code and the tests that it names; ``tests/mutations.py`` runs it."""

from __future__ import annotations

from tests.mutations import LIST, ROOT, read

FOUND = tuple(read(LIST.read_text(encoding="utf-8")))


def test_there_are_twenty_five() -> None:
    assert [one.number for one in FOUND] == list(range(1, 26))


def test_each_fits_one_place_in_the_code() -> None:
    places = {
        one.number: (ROOT / one.file).read_text(encoding="utf-8").count(one.before) for one in FOUND
    }
    assert {number: places[number] for number in places if places[number] != 1} == {}


def test_the_tests_that_are_named_are_there() -> None:
    missing = [
        one.test
        for one in FOUND
        if one.test.rpartition("::")[2]
        not in (ROOT / one.test.partition("::")[0]).read_text(encoding="utf-8")
    ]
    assert missing == []
