"""BERT over texts and pairs of texts, batched by length, on one device. Thread-safe."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from posology.devices import CPU, find_device
from posology.errors import ModelUnavailable
from posology.hub import loading, locate
from posology.index.embedders.models import torch_dtype
from posology.index.embedders.windows import batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.index.embedders.options import Options

#: a text, or two that the model reads as one input of two segments
Text: TypeAlias = str | tuple[str, str]

#: padded tokens of one forward pass: on CPUs few enough for the activations to stay in the cache, on
#: accelerators enough to keep one busy
TOKEN_BUDGET, TOKEN_BUDGET_ACCELERATED = 2_048, 32_768


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Checkpoint:
    """A model and its tokenizer, loaded from a folder."""

    #: on :attr:`device`, in evaluation mode
    model: Any
    #: a fast tokenizer of transformers
    tokenizer: Any
    #: folder of the weights and all other files
    folder: Path
    #: the device that it runs on
    device: str


def load_checkpoint(model: str, *, architecture: str, options: Options, what: str) -> Checkpoint:
    """Load a checkpoint in the hub's format. Blocking, never over the network; no code of its own is run.

    Args:
        model: a folder, or a hub name whose files are in the local cache.
        architecture: name of one of transformers' auto classes.
        options: their device, and their precision as :func:`~.models.torch_dtype` takes it.
        what: kind of model, for error messages.

    Raises:
        ModelUnavailable: there are no such files, they are damaged, lack some of the model's weights, or
            have no fast tokenizer, or the device has no room for them.
        DeviceUnavailable: the device is not there.
    """
    folder, device = locate(model, kind=what), find_device(options.device)
    try:
        import torch
        import transformers

        with loading(reports=False):
            loaded, report = getattr(transformers, architecture).from_pretrained(
                folder,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
                # converted below: another dtype would be every thread's default while this one loads
                dtype=torch.float32,
                # on CPUs it is faster than the fused kernel for texts this short
                **({"attn_implementation": "eager"} if device == CPU else {}),
            )
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        loaded.eval().to(device, torch_dtype(options.precision, device))
    # the parsers of damaged files raise any class of error
    except Exception as error:
        raise ModelUnavailable(
            f"{folder} cannot be loaded as a {what}: {error}", model=model
        ) from error
    # no published use of these models reads BERT's pooler
    missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise ModelUnavailable(
            f"{folder} is not a {what}: it lacks {', '.join(missing[:3])}", model=model
        )
    if not getattr(tokenizer, "is_fast", False):
        raise ModelUnavailable(f"{folder} must have a fast tokenizer", model=model)
    return Checkpoint(model=loaded, tokenizer=tokenizer, folder=folder, device=device)


class Reader:
    """A checkpoint as a function from texts to one row of numbers each.

    Texts are cut as transformers cuts them (``truncation=True``): of a pair, the longer one first.

    Args:
        checkpoint: model and tokenizer.
        limit: tokens of an input, special ones included; fewer where the model takes fewer.
        head: from the model's output to one row an input, shape ``(rows, width)``.
    """

    def __init__(
        self, checkpoint: Checkpoint, *, limit: int, head: Callable[[Any], torch.Tensor]
    ) -> None:
        from tokenizers import Tokenizer

        given = checkpoint.tokenizer
        stated = (checkpoint.model.config.max_position_embeddings, given.model_max_length)
        #: tokens of an input, special ones included
        self.limit = min(limit, *(int(n) for n in stated))
        # a copy of its own: truncation and padding of the shared one change under other threads
        self._tokenizer = Tokenizer.from_str(given.backend_tokenizer.to_str())
        self._tokenizer.enable_truncation(max_length=self.limit, strategy="longest_first")
        self._tokenizer.no_padding()
        self._pad = int(given.pad_token_id or 0)
        self._model, self._head, self._device = checkpoint.model, head, checkpoint.device
        self._budget = TOKEN_BUDGET if checkpoint.device == CPU else TOKEN_BUDGET_ACCELERATED
        # one pass uses every core; two at once only slow each other down
        self._turn = threading.Lock()

    def __call__(self, texts: Sequence[Text], width: int) -> NDArray[np.float32]:
        """Return one row a text, shape ``(len(texts), width)``, in the order of the texts."""
        matrix = np.zeros((len(texts), width), np.float32)
        inputs = self._tokenizer.encode_batch(list(texts))
        lengths = [len(one.ids) for one in inputs]
        for batch in batches(lengths, budget=self._budget, limit=self.limit):
            shape = (batch.rows, batch.width)
            ids = torch.full(shape, self._pad, dtype=torch.long)
            kinds, mask = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
            # a row of padding still attends to one token
            mask[len(batch.items) :, 0] = 1
            for row, item in enumerate(batch.items):
                one = inputs[item]
                ids[row, : len(one.ids)] = torch.tensor(one.ids)
                kinds[row, : len(one.ids)] = torch.tensor(one.type_ids)
                mask[row, : len(one.ids)] = 1
            with self._turn, torch.inference_mode():
                output = self._model(
                    input_ids=ids.to(self._device),
                    attention_mask=mask.to(self._device),
                    token_type_ids=kinds.to(self._device),
                )
                rows = self._head(output).float().cpu().numpy()
            matrix[list(batch.items)] = rows[: len(batch.items)]
        return matrix
