"""Descriptions that local servers give, as they document them: documents of a :class:`StubProvider`."""

from __future__ import annotations

from typing import Any


def llamacpp_documents(model: str, *, window: int = 8_192, slots: int = 1) -> dict[str, Any]:
    """llama.cpp's server with one model (``tools/server/README.md``)."""
    row = {"id": model, "aliases": [model], "object": "model", "meta": {"n_ctx": window}}
    return {
        "/v1/models": {"object": "list", "data": [row]},
        "/props": {
            "default_generation_settings": {"params": {"temperature": 0.8}, "n_ctx": window},
            "total_slots": slots,
            "model_alias": model,
            "model_path": f"/models/{model}.gguf",
        },
    }


def vllm_documents(model: str, *, window: int = 8_192) -> dict[str, Any]:
    """VLLM with one model."""
    row = {
        "id": model,
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "vllm",
        "root": model,
        "parent": None,
        "max_model_len": window,
    }
    return {"/v1/models": {"object": "list", "data": [row]}}


def lmstudio_documents(model: str, *, window: int | None = 8_192) -> dict[str, Any]:
    """LM Studio with one model and an embedder (REST API v0).

    Args:
        model: its name.
        window: that it is loaded with; ``None``: it is not loaded.
    """
    row = {
        "id": model,
        "object": "model",
        "type": "llm",
        "publisher": "lmstudio-community",
        "arch": "qwen2",
        "compatibility_type": "gguf",
        "quantization": "Q4_K_M",
        "state": "not-loaded" if window is None else "loaded",
        "max_context_length": 32_768,
    }
    if window is not None:
        row["loaded_context_length"] = window
    embedder = {"id": "nomic-embed", "object": "model", "type": "embeddings", "state": "not-loaded"}
    return {"/api/v0/models": {"object": "list", "data": [row, embedder]}}


def ollama_documents(
    model: str,
    *,
    trained: int = 40_960,
    loaded: int | None = None,
    parameters: str = "",
    thinks: bool = False,
) -> dict[str, Any]:
    """Ollama with one model (``docs/api.md``).

    Args:
        model: its name.
        trained: tokens that it was trained to read.
        loaded: window that it is loaded with; ``None``: it is not loaded.
        parameters: of its Modelfile, a line each.
        thinks: whether it can reason.
    """
    row = {"name": model, "model": model, "size": 5_225_388_164, "digest": "500a1f067a9f"}
    running = [] if loaded is None else [{**row, "context_length": loaded}]
    return {
        "/api/tags": {"models": [row]},
        "/api/ps": {"models": running},
        "/api/show": {
            "parameters": parameters,
            "details": {"format": "gguf", "family": "qwen3"},
            "model_info": {"general.architecture": "qwen3", "qwen3.context_length": trained},
            "capabilities": ["completion", *(["thinking"] if thinks else [])],
        },
    }
