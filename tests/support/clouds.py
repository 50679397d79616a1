"""Adapters of all providers, connected to a stub with credentials that mean nothing."""

from __future__ import annotations

from typing import Any

from google.oauth2.credentials import Credentials

from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.clouds.azure import AzureAdapter
from posology.llm.providers.clouds.bedrock import BedrockAdapter
from posology.llm.providers.clouds.vertex import VertexAdapter
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.providers.table import ProviderOptions
from posology.testing import StubProvider

KEY = "sk-secret-0123456789"
TOKEN = "ya29.secret-0123456789"

#: all that connects to a cloud
WHOLE = {
    "azure": ProviderOptions(
        api_key=KEY,
        base_url="https://trials.openai.azure.com",
        more={"OPENAI_API_VERSION": "2025-04-01-preview"},
    ),
    "bedrock": ProviderOptions(api_key=KEY, more={"AWS_REGION": "eu-west-1"}),
    "vertex": ProviderOptions(
        more={"CLOUD_ML_REGION": "europe-west1", "ANTHROPIC_VERTEX_PROJECT_ID": "trials"}
    ),
}


def adapter_to(
    provider: str, stub: StubProvider, **options: Any
) -> OpenAIAdapter | AnthropicAdapter:
    """An adapter of a provider of the table."""
    url = stub.anthropic_url
    match provider:
        case "openai":
            return OpenAIAdapter(api_key=KEY, base_url=stub.openai_url, **options)
        case "anthropic":
            return AnthropicAdapter(api_key=KEY, base_url=url, **options)
        case "azure":
            return AzureAdapter(
                api_key=KEY, base_url=url, **{"version": "2025-04-01-preview", **options}
            )
        case "bedrock":
            return BedrockAdapter(
                **{"api_key": KEY, "base_url": url, "region": "eu-west-1", **options}
            )
        case "vertex":
            token = Credentials(token=TOKEN)  # type: ignore[no-untyped-call]
            given = {"region": "eu", "project": "trials", "credentials": token, **options}
            return VertexAdapter(base_url=stub.vertex_url, **given)
    raise AssertionError(provider)
