"""A tiny causal language model of random weights, in the files of a real one."""

from __future__ import annotations

from pathlib import Path

#: what stands in front of a text and after it are one token
_EDGES = ("bos_token", "eos_token")


def save_tiny_language_model(folder: Path, *, context: int = 32) -> Path:
    """Make a GPT-2 of two layers and 32 dimensions, and save it as transformers does.

    Its tokenizer knows bytes and a few pairs of letters, so that most words are several tokens.

    Args:
        folder: made, where the model is written.
        context: tokens that it takes at once.

    Returns:
        The same folder.
    """
    import torch
    from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
    from tokenizers.models import BPE
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    merges = [("a", "s"), ("i", "n"), ("Ġ", "t"), ("Ġt", "h"), ("Ġth", "e"), ("o", "n")]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ["<|endoftext|>", *letters, *(a + b for a, b in merges)]
    backend = Tokenizer(BPE({name: i for i, name in enumerate(names)}, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend, model_max_length=context, **dict.fromkeys(_EDGES, names[0])
    )
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(names), n_positions=context, n_embd=32, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
