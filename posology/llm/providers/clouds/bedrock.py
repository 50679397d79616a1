"""Claude on Amazon Bedrock."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import anthropic

from posology.errors import ConfigurationError, UnknownModel
from posology.llm.providers.anthropic import VENDOR, AnthropicAdapter

REGION = "AWS_REGION"
KEY = "AWS_BEARER_TOKEN_BEDROCK"


class BedrockAdapter(AnthropicAdapter):
    """A :class:`~posology.seams.Send` over Bedrock: one HTTP request for each call.

    Args:
        api_key: a Bedrock API key; ``None``: requests are signed with the credentials that boto3 finds, such as a
            profile or the role of a machine.
        region: AWS region that receives requests, and that signatures name.
        base_url: ``None``: the region's own.
        options: of :class:`~posology.llm.providers.anthropic.AnthropicAdapter`.

    Raises:
        ConfigurationError: the region is missing, the key or the base URL is malformed, or there is neither a key
            nor boto3.
    """

    VENDOR = replace(
        VENDOR,
        provider="bedrock",
        key_variable=KEY,
        url_variable="ANTHROPIC_BEDROCK_BASE_URL",
        base_url="",
        id_header="x-amzn-requestid",
        other_credentials=f"set {KEY}, or configure AWS credentials as for the AWS CLI",
    )
    SDK = anthropic.AsyncAnthropicBedrock

    def __init__(
        self,
        *,
        api_key: str | None,
        region: str | None,
        base_url: str | None = None,
        **options: Any,
    ) -> None:
        if not region:
            raise ConfigurationError(
                f"{REGION} is not set: use the region of Bedrock, such as us-east-1"
            )
        if not api_key and importlib.util.find_spec("boto3") is None:
            raise ConfigurationError(
                f"AWS credentials need the package boto3: pip install 'posology[bedrock]', or set {KEY}"
            )
        super().__init__(
            api_key=api_key,
            base_url=base_url or f"https://bedrock-runtime.{region}.amazonaws.com",
            aws_region=region,
            **options,
        )
        # without a key the SDK asks the environment, where an empty one counts
        self._sdk.api_key = self._key or None

    def _name(self, model: str) -> str:
        name = super()._name(model)
        if "anthropic." not in name:
            raise UnknownModel(
                f"{model!r} is not Claude: bedrock takes names such as global.anthropic.claude-haiku-5-5",
                model=model,
            )
        return name
