"""Why a reply ended, by the names that providers and gateways have for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from posology.types import Finish

#: names without case and separators: OpenAI, Anthropic, Gemini, Cohere, Mistral, TGI and Together, Bedrock, Zhipu
_NAMES: Final[Mapping[str, Finish]] = MappingProxyType(
    {
        name: finish
        for finish, names in {
            Finish.STOP: "stop endturn stopsequence eos eostoken complete completed end",
            # the last ones: cut by the window, not by max_tokens
            Finish.LENGTH: "length maxtokens maxoutputtokens maxcompletiontokens maxlength modellength "
            "modelcontextwindowexceeded contextlength errorlimit",
            Finish.FILTERED: "contentfilter contentfiltered refusal safety recitation blocklist spii "
            "prohibitedcontent guardrailintervened errortoxic sensitive blocked",
        }.items()
        for name in names.split()
    }
)
#: the server gave up: OpenRouter and Mistral; Zhipu; DeepSeek; vLLM and SGLang
_FAILED: Final = frozenset({"error", "networkerror", "insufficientsystemresource", "abort", "aborted", "failed"})  # fmt: skip


def finish_of(named: object) -> Finish:
    """Return the reason for which a reply ended, whatever case and separators its name has."""
    return _NAMES.get(_plain(named), Finish.OTHER)


def gave_up(named: object) -> bool:
    """Return whether a reply ended because the server failed."""
    return _plain(named) in _FAILED


def _plain(named: object) -> str:
    if not isinstance(named, str):
        return ""
    # Gemini adds its own reason, after a colon
    name = named.partition(":")[0].lower()
    return re.sub(r"[^a-z]", "", name).removeprefix("finishreason")
