from __future__ import annotations

import hashlib

import pytest

from posology.budget.tenants import api_keys


def test_a_key_has_an_id_and_192_random_bits() -> None:
    made = [api_keys.make() for _ in range(1_000)]
    assert len({key.text for key in made}) == len({key.id for key in made}) == 1_000
    for key in made:
        start, own, secret = key.text.split("_")
        assert (start, own) == ("psl", key.id)
        assert len(bytes.fromhex(secret)) * 8 == 192
    # no half of the secret is the same in all
    assert (
        len({key.text[-24:] for key in made}) == len({key.text[-48:-24] for key in made}) == 1_000
    )


def test_a_key_does_not_show_itself() -> None:
    key = api_keys.make()
    assert key.text not in repr(key)
    assert key.text[-48:] not in repr(key)


def test_a_key_is_known_by_its_hash_alone() -> None:
    key, other = api_keys.make(), api_keys.make()
    kept = api_keys.digest(key.text)
    assert kept == hashlib.sha256(key.text.encode()).hexdigest()
    assert api_keys.is_key_of(key.text, kept)
    assert not api_keys.is_key_of(other.text, kept)
    assert not api_keys.is_key_of(key.text, None)
    assert not api_keys.is_key_of(key.text, "")


@pytest.mark.parametrize("change", [
    lambda text: text[:-1], lambda text: text + "0", lambda text: text.upper(), lambda text: text[4:],
    lambda text: text.replace("_", "-"), lambda text: f" {text}", lambda text: f"{text}\n", lambda text: "",
    lambda text: text[:-1] + "g", lambda text: text[:-1] + "\u0661", lambda text: "psl_*_" + text[-48:],
])  # fmt: skip
def test_what_has_another_form_is_no_key(change: object) -> None:
    assert callable(change)
    text = api_keys.make().text
    assert api_keys.id_of(text) == text.split("_")[1]
    assert api_keys.id_of(change(text)) is None
