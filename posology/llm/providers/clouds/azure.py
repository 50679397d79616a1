"""Azure OpenAI: chat completions of deployments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import openai

from posology.errors import ConfigurationError
from posology.llm.providers.openai import VENDOR, OpenAIAdapter

DEPLOYMENTS = "AZURE_OPENAI_DEPLOYMENTS"
VERSION = "OPENAI_API_VERSION"


class AzureAdapter(OpenAIAdapter):
    """A :class:`~posology.seams.Send` over Azure OpenAI: one HTTP request for each call, to a model's deployment.

    Args:
        api_key: key of the resource.
        base_url: endpoint of the resource, ``https://NAME.openai.azure.com``.
        version: version of the API, as a date.
        deployments: names of deployments by model; others are named like their model.
        options: of :class:`~posology.llm.providers.openai.OpenAIAdapter`.

    Raises:
        MissingKey: ``api_key`` is empty.
        ConfigurationError: endpoint or version are missing, or the key or the endpoint is malformed.
    """

    VENDOR = replace(
        VENDOR,
        provider="azure",
        key_variable="AZURE_OPENAI_API_KEY",
        url_variable="AZURE_OPENAI_ENDPOINT",
        base_url="",
    )
    SDK = openai.AsyncAzureOpenAI
    PROGRESS = False

    def __init__(
        self,
        *,
        api_key: str | None,
        base_url: str | None,
        version: str | None,
        deployments: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        if not base_url:
            raise ConfigurationError(
                f"{self.VENDOR.url_variable} is not set: use the endpoint of the resource, https://NAME.openai.azure.com"
            )
        if not version:
            raise ConfigurationError(
                f"{VERSION} is not set: use the API version that the deployment's sample code shows"
            )
        self._deployments = deployments or {}
        super().__init__(
            api_key=api_key,
            base_url=f"{base_url.rstrip('/')}/openai",
            api_version=version,
            **options,
        )

    def _name(self, model: str) -> str:
        name = super()._name(model)
        return self._deployments.get(name, name)


def parse_deployments(text: str | None) -> Mapping[str, str]:
    """Return deployments by model, of ``MODEL=DEPLOYMENT,…``.

    Raises:
        ConfigurationError: the text has another form, or names a model twice.
    """
    found: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in (text or "").split(","))):
        model, _, deployment = (part.strip() for part in pair.partition("="))
        if not model or not deployment or model in found:
            raise ConfigurationError(
                f"{DEPLOYMENTS}: write MODEL=DEPLOYMENT,…, each model once (got {pair!r})"
            )
        found[model] = deployment
    return found
