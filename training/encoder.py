"""Makes the packaged encoder from the published weights of all-MiniLM-L6-v2.

``python -m training.encoder [--folder DIR] [--write]``. The vectors of words become integers with a scale a row, which the
cross-encoders read, too; the layers become ONNX with 8-bit products of 7-bit weights, which are right on every CPU. Both are
compared with the published model. Without ``--write`` the packaged files stay. A minute on two cores.
"""

from __future__ import annotations

import argparse
import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from posology.hub import DEFAULT, PACKAGED, published
from posology.index.embedders.card import Loaded
from posology.index.embedders.models import load_folder
from posology.index.embedders.onnx.export import TOKENS, additive, sample, sample_batches, traced
from posology.index.embedders.onnx.files import CARD, MODEL, SUMS, TOKENIZER
from posology.index.embedders.onnx.layers import with_layers
from posology.index.embedders.onnx.quantisation import observe, quantise
from posology.index.embedders.packaged import SCALES, WORDS, load_packaged
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

#: of a weight: sums of 8-bit products saturate on CPUs without VNNI
BITS = 7
#: smallest cosine between a text's vector and the published model's
LEAST = 0.98


class _Encoder(torch.nn.Module):
    """The layers, from the vectors of words on."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, embeddings: Tensor, mask: Tensor) -> Tensor:
        found: Tensor = self.encoder(
            inputs_embeds=embeddings, attention_mask=additive(mask)
        ).last_hidden_state
        return found


def in_bytes(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return vectors as integers, and a scale for each row, shape ``(rows, 1)``."""
    scales = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-12) / 127
    return np.rint(vectors / scales).astype(np.int8), scales.astype(np.float32)


def make(loaded: Loaded) -> dict[str, bytes]:
    """Return the packaged files of a model that torch runs, by name."""
    model: Any = loaded.forward
    encoder = model.model[0].auto_model
    words = encoder.embeddings.word_embeddings.weight.detach().numpy()
    numbers, scales = in_bytes(words)
    vectors = numbers * scales
    feeds = [
        {"embeddings": vectors[ids], "attention_mask": mask}
        for ids, mask in sample_batches(model.model, loaded.card)
    ]
    mask = torch.ones((2, 7), dtype=torch.long)
    mask[1, 5:] = 0
    given = {"embeddings": torch.randn(2, 7, words.shape[1]), "attention_mask": mask}
    exact = traced(_Encoder(encoder), given, {"token_embeddings": TOKENS})
    content = {
        MODEL: with_layers(quantise(exact, observe(exact, feeds), bits=BITS)),
        TOKENIZER: loaded.tokenizer.encode(),
        CARD: loaded.card.dump().encode(),
    }
    for name, array in ((WORDS, numbers), (SCALES, scales)):
        into = io.BytesIO()
        np.save(into, array)
        content[name] = into.getvalue()
    sums = (f"{hashlib.sha256(part).hexdigest()}  {name}\n" for name, part in content.items())
    return {**content, SUMS: "".join(sums).encode()}


def cosines(folder: Path, loaded: Loaded) -> NDArray[np.float32]:
    """Return the cosines of texts' vectors by the files of a folder and by the published model."""
    made, exact = (
        SentenceTransformerEmbedder(one).embed_queries(sample())
        for one in (load_packaged(folder), loaded)
    )
    found: NDArray[np.float32] = (made * exact).sum(axis=1)
    return found


def main() -> None:
    """Make the files, compare them, and write the packaged ones with ``--write``."""
    parser = argparse.ArgumentParser(prog="training.encoder", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/encoder"))
    parser.add_argument("--write", action="store_true", help="replace the packaged files")
    given = parser.parse_args()
    loaded = load_folder(published(), embedder=DEFAULT, precision="float32")
    content = make(loaded)
    folder = PACKAGED if given.write else given.folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in content.items():
        (folder / name).write_bytes(part)
    found = cosines(folder, loaded)
    print(content[SUMS].decode(), end="")
    print(
        f"cosine to the published model: {found.mean():.4f} in the mean, {found.min():.4f} at the least"
    )
    if found.min() < LEAST:
        raise SystemExit(f"less than {LEAST}")


if __name__ == "__main__":
    main()
