"""A tiny BERT with its pre-training heads, of random weights, in the files of a real one."""

from __future__ import annotations

from pathlib import Path

#: words that its vocabulary holds whole
WORDS = ("aspirin", "lowered", "the", "risk", "of", "stroke", "in", "adults", "not", "dose", "mg")


def save_tiny_bert(folder: Path, *, context: int = 48, heads: bool = True, seed: int = 0) -> Path:
    """Make a BERT of two layers and 32 dimensions, and save it as transformers does.

    Its tokenizer knows :data:`WORDS` and single characters, so that most words are several tokens.

    Args:
        folder: made, where the model is written.
        context: tokens that it takes at once.
        heads: whether it has the heads that it was pre-trained with, that of next sentences among them.
        seed: of the weights.

    Returns:
        The same folder.
    """
    import torch
    from transformers import BertConfig, BertForPreTraining, BertModel, BertTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    letters = [chr(c) for c in range(33, 127)]
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [*marks, *WORDS, *letters, *("##" + c for c in letters)]
    listed = folder / "vocab.txt"
    listed.write_text("\n".join(vocabulary), encoding="utf-8")
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=context,
    )
    model = BertForPreTraining(config) if heads else BertModel(config)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "LayerNorm" not in name:
                # the usual 0.02 would give all texts about the same score
                weights.normal_(0, 0.3)
    model.save_pretrained(folder)
    tokenizer = BertTokenizer(vocab=str(listed), model_max_length=context)
    tokenizer.save_pretrained(folder)
    return folder
