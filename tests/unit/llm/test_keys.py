"""Keys of providers as people copy them."""

from __future__ import annotations

import pytest

from posology.errors import ConfigurationError, MissingKey
from posology.llm.providers.wire import checked_key

KEY = "sk-test-0123456789"


@pytest.mark.parametrize(
    "given",
    [
        KEY, f"{KEY}\n", f"  {KEY}\r\n", f'"{KEY}"', f"'{KEY}'", f"`{KEY}`", f"Bearer {KEY}", f"bearer  {KEY}\n",
        f'"Bearer {KEY}"', f'" {KEY} "',
    ],
)  # fmt: skip
def test_what_is_copied_with_a_key_is_no_part_of_it(given: str) -> None:
    assert checked_key(given, variable="A_KEY", provider="a") == KEY


@pytest.mark.parametrize("given", [None, "", " \n", '""', "''", '" "'])
def test_nothing_is_no_key(given: str | None) -> None:
    with pytest.raises(MissingKey, match="A_KEY"):
        checked_key(given, variable="A_KEY", provider="a")


@pytest.mark.parametrize("given", [f"\ufeff{KEY}", "sk-\ttest", "sk-…", f"“{KEY}”", "sk-a\nsk-b"])
def test_what_no_header_takes_is_named_and_not_shown(given: str) -> None:
    with pytest.raises(ConfigurationError, match="A_KEY contains characters") as caught:
        checked_key(given, variable="A_KEY", provider="a")
    assert given not in str(caught.value)


@pytest.mark.parametrize("given", ['sk-"x', "Bearer-1", '"', "a b"])
def test_other_keys_stay_as_they_are(given: str) -> None:
    assert checked_key(given, variable="A_KEY", provider="a") == given
