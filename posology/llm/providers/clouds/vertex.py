"""Claude on Google Cloud's Vertex AI."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import anthropic

from posology.errors import ConfigurationError
from posology.llm.providers.anthropic import VENDOR, AnthropicAdapter

REGION = "CLOUD_ML_REGION"
PROJECT = "ANTHROPIC_VERTEX_PROJECT_ID"
_OWN = {
    "global": "https://aiplatform.googleapis.com/v1",
    "us": "https://aiplatform.us.rep.googleapis.com/v1",
    "eu": "https://aiplatform.eu.rep.googleapis.com/v1",
}


class VertexAdapter(AnthropicAdapter):
    """A :class:`~posology.seams.Send` over Vertex AI: one HTTP request for each call.

    Tokens come from Google's application default credentials, and are renewed when they expire. They are looked for at
    the first call.

    Args:
        region: ``global``, ``us``, ``eu`` or a region.
        project: id of the project that pays.
        base_url: with the version; ``None``: the region's own.
        options: of :class:`~posology.llm.providers.anthropic.AnthropicAdapter`.

    Raises:
        ConfigurationError: region or project are missing, the base URL is malformed, or google-auth is not installed.
    """

    VENDOR = replace(
        VENDOR,
        provider="vertex",
        key_variable="",
        url_variable="ANTHROPIC_VERTEX_BASE_URL",
        base_url="",
        other_credentials="run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
    )
    SDK = anthropic.AsyncAnthropicVertex

    def __init__(
        self,
        *,
        region: str | None,
        project: str | None,
        base_url: str | None = None,
        **options: Any,
    ) -> None:
        if not region:
            raise ConfigurationError(
                f"{REGION} is not set: use global, us, eu or a region of Vertex AI"
            )
        if not project:
            raise ConfigurationError(
                f"{PROJECT} is not set: use the id of your Google Cloud project"
            )
        if (
            importlib.util.find_spec("google") is None
            or importlib.util.find_spec("google.auth") is None
        ):
            raise ConfigurationError(
                "Vertex AI needs the package google-auth: pip install 'posology[vertex]'"
            )
        super().__init__(
            api_key=None,
            base_url=base_url or _OWN.get(region, f"https://{region}-aiplatform.googleapis.com/v1"),
            region=region,
            project_id=project,
            **options,
        )
