"""Export of an encoder to ONNX, with a check that both compute the same vectors."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from posology.index.embedders.onnx.forward import NotExported, OnnxForward, pools
from posology.index.embedders.onnx.layers import with_layers
from posology.index.embedders.onnx.quantisation import observe, quantise

if TYPE_CHECKING:
    from pathlib import Path

    import torch
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

    from posology.index.embedders.card import Card

#: version of the export; raise it so that cached files are made again
RECIPE = 2
#: number of sample texts, and of their sentences, that fix the activations' scales
TEXTS = 48
#: minimum cosine between a text's vector and torch's in float32
LEAST = {"float32": 0.9999, "int8": 0.98}
#: texts of out-of-memory errors of torch and ONNX Runtime, which have no class of their own
_NO_MEMORY = ("allocate memory", "not enough memory", "bad_alloc")

#: axes of what has a row an input and a place a token
TOKENS: Mapping[int, str] = MappingProxyType({0: "rows", 1: "width"})

Arithmetic = Literal["float32", "int8"]
Batch = tuple["NDArray[np.int64]", "NDArray[np.int64]"]


def make(
    model: SentenceTransformer, folder: Path, card: Card, *, arithmetic: Arithmetic, bits: int
) -> bytes:
    """Return the ONNX model of an encoder, checked against it. Blocking, some seconds.

    Args:
        model: float32, on the CPU.
        folder: its files; an ``onnx/model.onnx`` among them is taken instead of an export.
        card: its card.
        arithmetic: of the products.
        bits: of a weight in ``int8``.

    Raises:
        NotExported: it pools in a way that needs torch, cannot be traced, or its vectors differ.
        OSError: a file cannot be read.
        MemoryError: there is too little memory for it.
    """
    if not pools(card.pooling):
        raise NotExported(f"pooling {card.pooling!r} is not supported")
    batches = sample_batches(model, card)
    last = NotExported("no export method is available")
    for way in (_published(folder), _traced(model, additive), _traced(model, _plain)):
        try:
            exported = _checked(way, model, card, batches, least=LEAST["float32"])
            break
        except FileNotFoundError:
            continue
        except NotExported as error:
            last = error
    else:
        raise last
    if arithmetic == "float32":
        return with_layers(exported)
    feeds = [
        {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        for ids, mask in batches
    ]
    return _checked(
        lambda: with_layers(quantise(exported, observe(exported, feeds), bits=bits)),
        model,
        card,
        batches,
        least=LEAST["int8"],
    )


def _checked(
    way: Callable[[], bytes],
    model: SentenceTransformer,
    card: Card,
    batches: Sequence[Batch],
    *,
    least: float,
) -> bytes:
    try:
        exported = way()
        check(exported, model, card, batches, least=least)
    # not faults of the model, so they are not remembered
    except (OSError, ImportError, MemoryError, NotExported):
        raise
    # torch's exporter and ONNX Runtime raise any class of error; the quantiser supports only graphs whose products have a
    # row per token
    except Exception as error:
        reason = str(error).partition("\n")[0]
        if any(words in str(error) for words in _NO_MEMORY):
            raise MemoryError(reason) from error
        raise NotExported(reason) from error
    return exported


def sample() -> list[str]:
    """Return texts that all installations have: notes of the sample corpus, and single sentences of them."""
    from posology.corpus.sample import notes_file

    with notes_file() as path:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    notes = [f"{row['title']}. {row['text']}" for row in rows[:: max(len(rows) // TEXTS, 1)]]
    return notes[:TEXTS] + [note.split(". ")[-1] for note in notes[:TEXTS]]


def check(
    exported: bytes,
    model: SentenceTransformer,
    card: Card,
    batches: Sequence[Batch],
    *,
    least: float,
) -> None:
    """Compare texts' vectors with torch's, in batches of several shapes.

    Raises:
        NotExported: a cosine is below ``least``.
    """
    from posology.index.embedders.torch_forward import TorchForward

    exact, made = TorchForward(model), OnnxForward(exported, card)
    ids, mask = batches[0]
    alone = ids[:1, : int(mask[0].sum())]
    for ids, mask in ((alone, np.ones_like(alone)), *batches[:: max(len(batches) // 3, 1)]):
        a, b = exact(ids, mask, 0)[0], made(ids, mask, 0)[0]
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        cosine = float(((a * b).sum(axis=1) / np.maximum(lengths, 1e-12)).min())
        if not cosine >= least:
            raise NotExported(
                f"vectors differ from torch's: cosine must be >= {least} (got {cosine:.4f})"
            )


def sample_batches(model: SentenceTransformer, card: Card) -> list[Batch]:
    """Return ids and masks of the texts of :func:`sample`, padded, eight a batch."""
    texts = sample()
    return [_batch(model, card, texts[i : i + 8]) for i in range(0, len(texts), 8)]


def _batch(model: SentenceTransformer, card: Card, texts: Sequence[str]) -> Batch:
    rows = [
        model.tokenizer(text, truncation=True, max_length=card.limit)["input_ids"] for text in texts
    ]
    ids = np.full((len(rows), max(map(len, rows))), card.pad, dtype=np.int64)
    mask = np.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
        mask[i, : len(row)] = 1
    return ids, mask


def _published(folder: Path) -> Callable[[], bytes]:
    return (folder / "onnx" / "model.onnx").read_bytes


def _traced(
    model: SentenceTransformer, masked: Callable[[torch.Tensor], torch.Tensor]
) -> Callable[[], bytes]:
    """Export an encoder that takes vocabulary ids."""
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self, encoder: torch.nn.Module) -> None:
            super().__init__()
            self.encoder = encoder

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor = self.encoder(
                input_ids=ids, attention_mask=masked(mask)
            ).last_hidden_state
            return output

    encoder = getattr(model[0], "auto_model", None)
    if not isinstance(encoder, torch.nn.Module):
        raise NotExported("the first module is not a transformer")

    def export() -> bytes:
        ids = torch.randint(5, 20, (2, 7))
        mask = torch.ones_like(ids)
        mask[1, 5:] = 0
        given = {"input_ids": ids, "attention_mask": mask}
        return traced(Encoder(encoder), given, {"token_embeddings": TOKENS})

    return export


def traced(
    module: torch.nn.Module,
    given: Mapping[str, torch.Tensor],
    outputs: Mapping[str, Mapping[int, str]],
) -> bytes:
    """Return a module in ONNX's format, by tracing: the exporter that needs nothing but ``onnx``.

    Args:
        module: it stays in evaluation mode.
        given: an example of each input, by name; their first two axes, :data:`TOKENS`, may have any length.
        outputs: the axes of each output that may, by name.
    """
    import torch

    into = io.BytesIO()
    with warnings.catch_warnings(), torch.inference_mode():
        # tracing warns of every constant; checks of the file find wrong ones
        warnings.simplefilter("ignore")
        torch.onnx.export(
            # the exporter leaves it in the mode in which it comes
            module.eval(),
            tuple(given.values()),
            into,  # type: ignore[arg-type]  # a file object is taken by this exporter
            dynamo=False,
            opset_version=17,
            input_names=list(given),
            output_names=list(outputs),
            dynamic_axes={**dict.fromkeys(given, TOKENS), **outputs},
        )
    return into.getvalue()


def additive(mask: torch.Tensor) -> torch.Tensor:
    """Return the mask that is added to attention; transformers' own conversion does not survive tracing."""
    return (1.0 - mask[:, None, None, :].float()) * -10_000.0


def _plain(mask: torch.Tensor) -> torch.Tensor:
    return mask
