"""Tiny cross-encoder re-rankers of random weights, in the files of real ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

#: architectures that it makes
Kind: TypeAlias = Literal["deberta-v2", "bert", "xlm-roberta"]
#: words that its vocabulary holds whole
WORDS = ("aspirin", "lowered", "the", "risk", "of", "stroke", "in", "adults", "not", "dose", "mg")
_DIM = 32
_MARKS = ("<pad>", "<unk>", "<cls>", "<sep>")


def save_tiny_reranker(
    folder: Path,
    *,
    kind: Kind = "deberta-v2",
    context: int = 64,
    labels: int = 1,
    seed: int = 0,
) -> Path:
    """Make a sequence classifier of two layers and 32 dimensions, and save it as transformers does.

    DeBERTa's settings are those of version 3: relative positions alone, no segments. Its tokenizer knows
    :data:`WORDS` and single characters, so that most words are several tokens.

    Args:
        folder: made, where the model is written.
        kind: the architecture.
        context: tokens that it takes at once, special ones included.
        labels: scores that it gives a pair.
        seed: of the weights.

    Returns:
        The same folder.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    tokenizer = _tokenizer(context, doubled=kind == "xlm-roberta")
    config = AutoConfig.for_model(
        kind, vocab_size=len(tokenizer), num_labels=labels, **_settings(kind, context)
    )
    torch.manual_seed(seed)
    model = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "LayerNorm" not in name:
                # the usual 0.02 would give all texts about the same score
                weights.normal_(0, 0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _settings(kind: Kind, context: int) -> dict[str, Any]:
    shared: dict[str, Any] = {
        "hidden_size": _DIM,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 2 * _DIM,
        "max_position_embeddings": context,
        "pad_token_id": 0,
    }
    if kind == "xlm-roberta":
        # positions are counted from behind the padding's
        return shared | {"max_position_embeddings": context + 1, "type_vocab_size": 1}
    if kind == "bert":
        return shared
    return shared | {
        "relative_attention": True,
        "position_buckets": 8,
        "max_relative_positions": -1,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "type_vocab_size": 0,
        "pooler_hidden_size": _DIM,
    }


def _tokenizer(context: int, *, doubled: bool) -> PreTrainedTokenizerFast:
    """A fast tokenizer.

    Args:
        context: tokens that the model takes.
        doubled: two marks stand between the texts of a pair, as RoBERTa has it.
    """
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece
    from transformers import PreTrainedTokenizerFast

    _, unknown, start, end = _MARKS
    letters = [chr(c) for c in range(33, 127)]
    vocab = {t: i for i, t in enumerate([*_MARKS, *WORDS, *letters, *("##" + c for c in letters)])}
    backend = Tokenizer(WordPiece(vocab, unk_token=unknown))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    between = f"{end} {end}" if doubled else end
    backend.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {between} $B:1 {end}:1",
        special_tokens=[(start, vocab[start]), (end, vocab[end])],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        model_max_length=context,
        **dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), _MARKS, strict=True)),
    )
