"""A tiny encoder of random weights, in the files of a real one."""

from __future__ import annotations

from pathlib import Path

#: words that its vocabulary holds whole
WORDS = ("aspirin", "lowered", "the", "risk", "of", "stroke", "in", "adults", "not", "dose", "mg")


def save_tiny_encoder(folder: Path, *, seed: int = 0) -> Path:
    """Make a BERT of two layers and 32 dimensions, and save it as sentence-transformers does.

    Its tokenizer knows :data:`WORDS` and single characters; it takes 32 tokens, so that most texts
    need several windows.

    Args:
        folder: where to; made if need be.
        seed: of the weights: each makes another encoder.

    Returns:
        The folder of the model, within ``folder``.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    letters = [chr(c) for c in range(33, 127)]
    vocab = {t: i for i, t in enumerate([*special, *WORDS, *letters, *("##" + c for c in letters)])}
    backend = Tokenizer(WordPiece(vocab, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", model_max_length=32,
    )  # fmt: skip
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocab), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=32,
    )  # fmt: skip
    bare = folder / "bare"
    BertModel(config).save_pretrained(bare)
    tokenizer.save_pretrained(bare)
    modules = [Transformer(str(bare)), Pooling(32)]
    model = folder / "model"
    SentenceTransformer(modules=modules, device="cpu").save(str(model))
    return model
