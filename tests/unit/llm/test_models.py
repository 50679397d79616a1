from __future__ import annotations

import subprocess
import sys

import pytest

from posology.errors import UnknownModel
from posology.llm import models
from posology.llm.providers import table


@pytest.mark.parametrize(
    ("text", "provider", "name"),
    [
        ("openai:gpt-4o-mini", "openai", "gpt-4o-mini"),
        (" anthropic:claude-sonnet-4-5 ", "anthropic", "claude-sonnet-4-5"),
        ("openai:ft:gpt-4o-mini:org::id", "openai", "ft:gpt-4o-mini:org::id"),
        ("offline:extractive", "offline", "extractive"),
    ],
)
def test_a_name_is_split_at_its_first_colon(text: str, provider: str, name: str) -> None:
    parsed = models.parse(text)
    assert (parsed.provider, parsed.name) == (provider, name)
    assert str(parsed) == text.strip()


@pytest.mark.parametrize("text", ["", "gpt-4o", "openai:", ":gpt-4o", "mistral:large", "OPENAI:x"])
def test_an_unknown_provider_is_told_what_is_known(text: str) -> None:
    with pytest.raises(UnknownModel, match=r"openai:NAME, anthropic:NAME or offline:extractive"):
        models.parse(text)


def test_an_unknown_offline_reader_is_told_which_there_are() -> None:
    with pytest.raises(UnknownModel, match="there is offline:extractive"):
        models.parse("offline:oracle")


def test_every_provider_but_the_offline_one_has_a_factory() -> None:
    assert set(table.FACTORIES) == set(models.PROVIDERS) - {"offline"}


def test_the_light_modules_load_no_sdk() -> None:
    code = (
        "import sys, posology.types, posology.llm, posology.llm.models, posology.testing\n"
        "import posology.llm.providers.table, posology.llm.stack, posology.budget.prices.book\n"
        "heavy = {'openai', 'anthropic', 'httpx2', 'genai_prices'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
