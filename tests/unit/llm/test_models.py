from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from posology.errors import ConfigurationError, MissingKey, UnknownModel
from posology.llm.models import names as models
from posology.llm.providers import table
from tests.support.clouds import WHOLE


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
def test_an_unknown_provider_names_the_known_forms(text: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        models.parse(text)
    assert caught.value.model == text
    for row in table.PROVIDERS.values():
        assert all(form in caught.value.message for form in row.forms)


def test_an_unknown_offline_reader_names_the_known_ones() -> None:
    with pytest.raises(UnknownModel, match="offline:extractive") as caught:
        models.parse("offline:oracle")
    assert caught.value.model == "offline:oracle"


REMOTE = [row for row in table.PROVIDERS.values() if row.connect is not None]


@pytest.mark.parametrize("row", REMOTE, ids=lambda row: row.name)
def test_an_adapter_names_the_variables_of_its_row(row: table.Provider) -> None:
    assert row.connect is not None
    whole = WHOLE.get(row.name, table.ProviderOptions())
    if row.key_variable and not row.key_optional:
        with pytest.raises(MissingKey) as caught:
            row.connect(replace(whole, api_key=None))
        assert caught.value.variable == row.key_variable
    if row.url_variable is None:
        # a process of our own
        return
    with pytest.raises(ConfigurationError, match=row.url_variable):
        row.connect(replace(whole, api_key="any", base_url="no address"))


def test_rows_stand_under_their_names() -> None:
    assert all(name == row.name for name, row in table.PROVIDERS.items())


def test_the_light_modules_load_no_sdk() -> None:
    code = (
        "import sys, posology.types, posology.llm, posology.llm.models, posology.testing\n"
        "import posology.llm.providers.table, posology.llm.stack, posology.budget.prices.book\n"
        "heavy = {'openai', 'anthropic', 'httpx2', 'genai_prices'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
