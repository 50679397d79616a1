"""Bound on the input tokens of a call, before it is sent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Set
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from posology.budget.bounds import openai_tokens
from posology.llm.models.families import Tokenizer, capabilities
from posology.llm.providers.table import PROVIDERS, SCHEMA_TOKENS
from posology.llm.schema import response_schema
from posology.text.bounds import TextBound, bytes_bound, words_bound
from posology.types import Call

if TYPE_CHECKING:
    from pydantic import BaseModel

#: Tokens that a provider adds to a message. OpenAI's cookbook counts 3 and the role; others publish
#: no figure.
PER_MESSAGE = 8
#: tokens that a provider adds to a call: start of the text, start of the reply
PER_CALL = 16
#: Tokens of newer tokenizers for one of the tokenizers that the rates were measured on. Claude's of 4.7 and later counts "approximately
#: 30 % more" than the one before (platform.claude.com, what's new in haiku-5-5); the rest is a margin.
NEWER = 1.35
#: providers of OpenAI's models by their own names
_OPENAI = ("openai", "azure")
#: number of cached schema lengths; there is one for each set of choices
_KEPT = 256


class CallBound:
    """A :class:`~posology.seams.Bound`: the best available bound for each model.

    - OpenAI's models whose tokenizer's file is available: its count, see
      :mod:`posology.budget.bounds.openai_tokens`.
    - Models with a strict bound, and models of unknown tokenizers: bytes.
    - All others: English words at measured rates, all else by bytes. See :mod:`posology.text.bounds`
      for which part is proven. Of newer tokenizers, which are not published, :data:`NEWER` times as much.

    Added to the texts: a constant for each message and for the call; for a structured reply its JSON schema, bounded
    like a text, and a constant. These are estimates with a margin, since no provider publishes them. A usage above its
    bound is possible; the account flags it.

    The first call to one of OpenAI's models reads a file, in some tenths of a second.

    Args:
        strict: models (``provider:name``, in lower case) that are bounded by bytes.
        native_schema: whether the schema of a structured reply is sent.
        openai_files: where ``tiktoken`` keeps its files; ``None``: where it does by default.
        measured: factors of models (``provider:name``, in lower case) that were seen to count more than their bound; a
            factor below 1 lowers nothing.
    """

    def __init__(
        self,
        *,
        strict: Set[str] = frozenset(),
        native_schema: bool = True,
        openai_files: Path | None = None,
        measured: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self._strict = strict
        self._native_schema = native_schema
        self._openai_files = openai_files or openai_tokens.default_folder()
        self._measured = measured

    def __call__(self, call: Call) -> int:
        """Return the maximum input tokens, at least 1."""
        times = max(1.0, self._measured.get(call.model.strip().lower(), 1.0))
        return math.ceil(times * self.of_table(call))

    def of_table(self, call: Call) -> int:
        """Return the maximum input tokens by the table of families, without what was measured."""
        provider, _, name = call.model.strip().partition(":")
        bound = self._of(call.model.strip().lower(), provider, name)
        texts = sum(bound(message.content) + PER_MESSAGE for message in call.messages)
        return texts + PER_CALL + self._form(call, provider, bound)

    def _of(self, model: str, provider: str, name: str) -> TextBound:
        if model in self._strict:
            return bytes_bound
        exact = _exact(name, self._openai_files) if provider in _OPENAI else None
        return exact or _BY_TOKENIZER[capabilities(model).tokenizer]

    def _form(self, call: Call, provider: str, bound: TextBound) -> int:
        if call.schema is None or not self._native_schema:
            return 0
        row = PROVIDERS.get(provider)
        return _schema(call.schema, bound) + (SCHEMA_TOKENS if row is None else row.schema_tokens)


def _newer(text: str) -> int:
    return min(bytes_bound(text), math.ceil(NEWER * words_bound(text)))


_BY_TOKENIZER: Mapping[Tokenizer, TextBound] = MappingProxyType(
    {
        "openai": words_bound,
        "claude": words_bound,
        "newer": _newer,
        "open": words_bound,
        "unknown": bytes_bound,
    }
)


@lru_cache(maxsize=_KEPT)
def _schema(schema: type[BaseModel], bound: TextBound) -> int:
    """Return the most tokens of a schema as it is sent, in the longer of the two dialects that are written here.

    What Anthropic's SDK makes of one is at most some dozen tokens longer, within :data:`SCHEMA_TOKENS`.
    """
    dialects = (schema.model_json_schema(), response_schema(schema).schema)
    return max(bound(json.dumps(one, separators=(",", ":"))) for one in dialects)


@lru_cache(maxsize=_KEPT)
def _exact(name: str, folder: Path) -> TextBound | None:
    count = openai_tokens.counter(name, folder)
    if count is None:
        return None

    def bound(text: str) -> int:
        return count(text) if len(text) <= openai_tokens.LONGEST else bytes_bound(text)

    return bound
