"""Model calls and the environment: the proxy before a provider, and certificates."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from posology.errors import ConfigurationError, ProviderError, ProviderUnreachable, RequestRejected
from posology.llm import switch
from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.openai import OpenAIAdapter
from tests.support.calls import a_call
from tests.support.receiver import receiving

KEY = "sk-test-0123456789"
pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _provider_that_nobody_is() -> Iterator[None]:
    """Requests are for provider.invalid, which only the proxies of the tests answer for."""
    before = switch.remote_providers_allowed()
    switch.allow_remote_providers(allowed=True)
    yield
    switch.allow_remote_providers(allowed=before)


@pytest.mark.parametrize(
    ("variable", "url", "status", "kind", "words"),
    [
        ("HTTPS_PROXY", "https", 407, ProviderUnreachable, r" \(407 Said\): check the proxy, or name the host in NO_PROXY"),
        ("ALL_PROXY", "https", 503, ProviderUnreachable, r" \(503 Said\): check the proxy"),
        ("HTTP_PROXY", "http", 407, RequestRejected, ""),
        ("HTTP_PROXY", "http", 502, ProviderError, ""),
        ("HTTP_PROXY", "http", None, ProviderUnreachable, ": check the proxy"),
    ],
)  # fmt: skip
async def test_a_failed_connection_names_the_proxy(
    variable: str,
    url: str,
    status: int | None,
    kind: type[ProviderError],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with receiving() as proxy:
        if status is not None:
            proxy.says(status)
        else:
            proxy.port = 1
        monkeypatch.setenv(variable, f"http://me:s3crt@127.0.0.1:{proxy.port}")
        adapter = OpenAIAdapter(api_key=KEY, base_url=f"{url}://provider.invalid/v1")
        named = rf" through the proxy http://\*\*\*@127.0.0.1:{proxy.port} \({variable}\){words}"
        with pytest.raises(kind, match=named) as caught:
            await adapter(a_call())
        await adapter.aclose()
    assert "s3crt" not in str(caught.value)


@pytest.mark.parametrize("adapter", [OpenAIAdapter, AnthropicAdapter])
@pytest.mark.parametrize(
    ("variable", "value"),
    [("ALL_PROXY", "socks5://127.0.0.1:1"), ("SSL_CERT_FILE", "/nowhere"), ("HTTPS_PROXY", "http://[")],
)  # fmt: skip
def test_a_variable_that_cannot_be_used_is_named(
    adapter: type[OpenAIAdapter | AnthropicAdapter],
    variable: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=variable):
        adapter(api_key=KEY)
    # a server on this machine needs none of it
    adapter(api_key=KEY, base_url="http://127.0.0.1:8000/v1")
