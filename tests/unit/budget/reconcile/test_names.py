from __future__ import annotations

import pytest

from posology.budget.reconcile.names import Naming, family, resolve


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-4o-mini", "gpt-4o-mini-2024-07-18"),
        ("gpt-4.1", "gpt-4.1-2025-04-14"),
        ("gpt-4", "gpt-4-0613"),
        ("chatgpt-4o-latest", "chatgpt-4o"),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4-5", "Claude Sonnet 4.5"),
        ("claude-3-5-haiku-latest", "Claude Haiku 3.5"),
        ("claude-3-5-haiku@20241022", "claude-3-5-haiku-20241022"),
        ("claude-opus-4-0", "claude-opus-4-20250514"),
        ("ft:gpt-4o-mini-2024-07-18:acme::abc", "ft-gpt-4o-mini-2024-07-18"),
        ("GPT-4o", "gpt-4o"),
    ],
)
def test_names_of_one_model(one: str, other: str) -> None:
    assert family(one) == family(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-4o", "gpt-4o-mini-2024-07-18"),
        ("gpt-4", "gpt-4.1"),
        ("gpt-4-1106-preview", "gpt-4"),
        ("gpt-5-mini", "gpt-5-2025-08-07"),
        ("claude-sonnet-4-5", "claude-sonnet-4-20250514"),
        ("claude-sonnet-4-5", "Claude Sonnet 4"),
        ("claude-3-5-haiku", "claude-5-3-haiku"),
        ("ft:gpt-4o-mini-2024-07-18:acme::abc", "gpt-4o-mini"),
    ],
)
def test_names_of_two_models(one: str, other: str) -> None:
    assert family(one) != family(other)


def test_an_alias_takes_all_its_snapshots() -> None:
    labels, together = resolve(
        {"gpt-4o"}, {"gpt-4o-2024-08-06", "gpt-4o-2024-11-20", "gpt-4o-mini"}
    )
    assert labels["gpt-4o-2024-08-06"] == labels["gpt-4o-2024-11-20"] == "gpt-4o"
    assert labels["gpt-4o-mini"] == "gpt-4o-mini"
    assert together == [
        Naming(label="gpt-4o", ours=("gpt-4o",), theirs=("gpt-4o-2024-08-06", "gpt-4o-2024-11-20"))
    ]


def test_pinned_snapshots_are_compared_one_by_one() -> None:
    names = {"gpt-4o-2024-08-06", "gpt-4o-2024-11-20"}
    labels, together = resolve(names, names)
    assert labels == {name: name for name in names}
    assert together == []


def test_a_name_for_people_stands_for_what_was_pinned() -> None:
    labels, (naming,) = resolve({"claude-sonnet-4-5-20250929"}, {"Claude Sonnet 4.5"})
    assert set(labels.values()) == {"claude-sonnet-4-5-20250929"}
    assert naming.theirs == ("Claude Sonnet 4.5",)
