"""A tiny sequence-to-sequence model of random weights, in the files of a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

#: words that its vocabulary holds whole
WORDS = (
    "aspirin", "lowered", "the", "risk", "of", "stroke", "in", "adults", "not", "dose", "was", "mg", "mortality",
    "a", "day", "for", "and", "bleeding", "patients",
)  # fmt: skip


def save_tiny_summarizer(
    folder: Path, *, kind: Literal["mt5", "t5"] = "mt5", seed: int = 0
) -> Path:
    """Make an mT5 or T5 of one layer and 32 dimensions, and save it as transformers does.

    Its tokenizer is a unigram model, as theirs is, of :data:`WORDS` and single characters.

    Args:
        folder: made, where the model is written.
        kind: which of the two.
        seed: of its weights.

    Returns:
        The same folder.
    """
    import torch
    from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
    from tokenizers.models import Unigram
    from transformers import (
        MT5Config,
        MT5ForConditionalGeneration,
        PreTrainedTokenizerFast,
        T5Config,
        T5ForConditionalGeneration,
    )

    special = ["<pad>", "</s>", "<unk>"]
    letters = [chr(c) for c in range(33, 127)]
    names = [*special, "▁", *(f"▁{word}" for word in WORDS), *letters]
    scores = [0.0] * 4 + [-3.0] * len(WORDS) + [-8.0] * len(letters)
    backend = Tokenizer(Unigram(list(zip(names, scores, strict=True)), unk_id=2))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        **dict(zip(("pad_token", "eos_token", "unk_token"), special, strict=True)),
    )
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {
        "vocab_size": len(names), "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1,
        "num_decoder_layers": 1, "num_heads": 2, "decoder_start_token_id": 0, "pad_token_id": 0,
        "eos_token_id": 1, "dropout_rate": 0.1,
        # so large that greedy decoding does not say one word over and over
        "initializer_factor": 4.0,
    }  # fmt: skip
    model = (
        MT5ForConditionalGeneration(MT5Config(**sizes))
        if kind == "mt5"
        else T5ForConditionalGeneration(T5Config(**sizes))
    )
    if kind == "mt5":
        # mT5's embeddings and its head are two, whatever its settings say in this version of transformers
        model.lm_head.weight = torch.nn.Parameter(4 * torch.randn(len(names), sizes["d_model"]))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
