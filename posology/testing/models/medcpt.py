"""MedCPT in miniature: its three models with random weights, in the files of the published ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: words that its vocabulary holds whole
WORDS = ("aspirin", "lowered", "the", "risk", "of", "stroke", "in", "adults", "not", "dose", "mg")


@dataclass(frozen=True, kw_only=True, slots=True)
class TinyMedCPT:
    """The folders of the three models."""

    query: Path
    article: Path
    cross: Path

    @property
    def embedder(self) -> str:
        """Return the name of the two encoders."""
        return f"medcpt:{self.query},{self.article}"

    @property
    def reranker(self) -> str:
        """Return the name of the cross-encoder."""
        return f"medcpt:{self.cross}"


def save_tiny_medcpt(
    folder: Path, *, dim: int = 32, context: int = 512, seed: int = 0
) -> TinyMedCPT:
    """Make three BERTs of two layers, and save them as transformers does.

    Their tokenizer knows :data:`WORDS` and single characters, so that most words
    are several tokens.

    Args:
        folder: where a folder for each is made.
        dim: length of the encoders' vectors.
        context: tokens that they take at once.
        seed: of the weights.
    """
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizer

    letters = [chr(c) for c in range(33, 127)]
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [*marks, *WORDS, *letters, *("##" + c for c in letters)]
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=dim,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * dim,
        max_position_embeddings=context,
    )
    config.num_labels = 1
    made = TinyMedCPT(query=folder / "query", article=folder / "article", cross=folder / "cross")
    for number, place in enumerate((made.query, made.article, made.cross)):
        torch.manual_seed(seed + number)
        kind = BertForSequenceClassification if place == made.cross else BertModel
        model = kind(config)
        with torch.no_grad():
            for name, weights in model.named_parameters():
                if "LayerNorm" not in name:
                    # the usual 0.02 would give all texts about the same vector
                    weights.normal_(0, 0.3)
        model.save_pretrained(place)
        listed = place / "vocab.txt"
        listed.write_text("\n".join(vocabulary), encoding="utf-8")
        BertTokenizer(vocab=str(listed), model_max_length=context).save_pretrained(place)
    return made


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
