"""The kinds of local servers: one row each, from which the table of providers makes its own."""

from __future__ import annotations

from dataclasses import dataclass

#: tokens of input and output together of a model that is loaded for us, unless configured
WINDOW = 8_192


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of server."""

    #: the part of a model's name before the colon
    name: str
    title: str
    #: default address, without ``/v1``
    address: str
    #: environment variable of another address
    url_variable: str
    #: environment variable of the API key, which most servers need none of
    key_variable: str
    #: calls at once where the server does not say how many it serves; ``None``: as with any other provider
    at_once: int | None = 1
    #: whether it counts the tokens of a call
    counts: bool = False


_ROWS = (
    Kind(
        name="ollama",
        title="Ollama",
        address="http://127.0.0.1:11434",
        url_variable="OLLAMA_HOST",
        key_variable="OLLAMA_API_KEY",
    ),
    Kind(
        name="lmstudio",
        title="LM Studio",
        address="http://127.0.0.1:1234",
        url_variable="LMSTUDIO_BASE_URL",
        key_variable="LMSTUDIO_API_KEY",
    ),
    Kind(
        name="llamacpp",
        title="llama.cpp",
        address="http://127.0.0.1:8080",
        url_variable="LLAMACPP_BASE_URL",
        # the server's own
        key_variable="LLAMA_API_KEY",
        counts=True,
    ),
    Kind(
        name="vllm",
        title="vLLM",
        address="http://127.0.0.1:8000",
        url_variable="VLLM_BASE_URL",
        # the server's own
        key_variable="VLLM_API_KEY",
        at_once=None,
        counts=True,
    ),
)
#: the kinds by their names
KINDS: dict[str, Kind] = {row.name: row for row in _ROWS}
#: of a file's model, in a process of our own
GGUF = Kind(
    name="gguf",
    title="llama.cpp in a process of Posology",
    address="http://127.0.0.1",
    url_variable="POSOLOGY_HOME",
    key_variable="",
    counts=True,
)
