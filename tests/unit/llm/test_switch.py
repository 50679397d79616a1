from __future__ import annotations

import pytest

from posology.errors import ConfigurationError
from posology.llm import switch
from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.openai import OpenAIAdapter
from posology.testing import forbid_remote_providers
from tests.support.calls import a_call

pytestmark = pytest.mark.anyio


def test_the_switch_returns_to_where_it_was() -> None:
    before = switch.remote_providers_allowed()
    switch.allow_remote_providers(allowed=True)
    try:
        with forbid_remote_providers():
            assert not switch.remote_providers_allowed()
            with forbid_remote_providers():
                pass
            assert not switch.remote_providers_allowed()
        assert switch.remote_providers_allowed()
        switch.check("https://api.openai.com/v1")
    finally:
        switch.allow_remote_providers(allowed=before)


@pytest.mark.parametrize(
    ("adapter", "model"),
    [(OpenAIAdapter, "openai:gpt-4o"), (AnthropicAdapter, "anthropic:claude-sonnet-4-5")],
)
async def test_no_adapter_leaves_this_machine_while_it_is_off(
    adapter: type[OpenAIAdapter | AnthropicAdapter], model: str
) -> None:
    complete = adapter(api_key="sk-test-0123456789")
    with forbid_remote_providers(), pytest.raises(ConfigurationError, match="disabled"):
        await complete(a_call(model=model))
    await complete.aclose()


@pytest.mark.parametrize("adapter", [OpenAIAdapter, AnthropicAdapter])
@pytest.mark.parametrize(
    "url",
    [
        "http://[bad/v1",
        "http://host:abc/v1",
        "http://host:99999/v1",
        "http://ho\nst/v1",
        "ftp://me:hidden@host/v1",
        "http://me:hidden@host:abc/v1",
    ],
)
def test_a_bad_base_url_is_told_by_its_variable_and_not_shown(
    adapter: type[OpenAIAdapter | AnthropicAdapter], url: str
) -> None:
    variable = "OPENAI_BASE_URL" if adapter is OpenAIAdapter else "ANTHROPIC_BASE_URL"
    with pytest.raises(ConfigurationError, match=variable) as caught:
        adapter(api_key="sk-test-0123456789", base_url=url)
    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_what_the_switch_says_leaves_the_url_out() -> None:
    with forbid_remote_providers(), pytest.raises(ConfigurationError, match="disabled") as caught:
        switch.check("https://me:hidden@example.org/v1")
    assert "hidden" not in str(caught.value)
