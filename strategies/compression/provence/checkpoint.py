"""Loading and saving of two-headed models: re-rankers, published Provence checkpoints, and our own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posology.errors import ModelUnavailable
from posology.hub import digest, loading, locate
from strategies.compression.provence.weights import published, read_config, read_weights

if TYPE_CHECKING:
    from torch import Tensor

    from strategies.compression.provence.heads import TwoHeads

#: maximum tokens of a window; checkpoints are trained at this length
MOST_CONTEXT = 512
#: names of the token head's weights in published checkpoints and in ours
_TOKEN_HEAD = ("token_classifier.weight", "token_classifier.bias")
#: buffers of old versions of transformers
_NO_WEIGHTS = ("position_ids",)
#: tokenizers without a limit report a larger number
_STATED = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Checkpoint:
    """A model in memory, ready for inference."""

    model: TwoHeads
    #: fast tokenizer
    tokenizer: Any
    #: architecture and digest of the weights
    name: str
    #: maximum tokens of an input, special tokens included
    limit: int
    #: whether the token head is trained; else it is newly initialised
    prunes: bool
    #: whether the ranking head is trained; else it is newly initialised
    ranks: bool
    #: whether questions are lower-cased and stripped of punctuation, as for the published checkpoint, which was
    #: trained on such questions (MS MARCO)
    plain: bool
    #: whether the model has segment ids
    segments: bool
    #: id of the padding token
    pad: int

    @property
    def parameters(self) -> int:
        """Return the number of weights without the token embeddings."""
        skipped = self.model.reranker.base_model.get_input_embeddings().weight.numel()
        return sum(weights.numel() for weights in self.model.parameters()) - int(skipped)


def load(model: str, *, device: str = "cpu", seed: int = 0) -> Checkpoint:
    """Load a model; missing heads are newly initialised. Blocking; without network access.

    No code of the checkpoint is executed: the architecture is that of transformers, and weights are mapped by name.

    Args:
        model: a folder, or a hub name whose files are in the local cache: a Provence checkpoint, any
            re-ranker of ``AutoModelForSequenceClassification``, or a bare encoder.
        device: ``cpu`` or ``cuda``.
        seed: of new heads.

    Raises:
        ModelUnavailable: the files are missing, damaged or of another kind.
    """
    import torch
    from torch import nn

    from strategies.compression.provence.heads import TwoHeads

    folder = locate(model)
    settings = read_config(folder, model)
    config = _config(settings, folder, model)
    weights = read_weights(folder, model)
    token_head = _token_head(weights, int(config.hidden_size), model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        reranker, ranks = _reranker(config, weights, model)
        heads = TwoHeads(reranker)
    if token_head is not None:
        linear: nn.Linear = heads.token_head
        linear.load_state_dict(token_head)
    tokenizer = _tokenizer(folder, config, model)
    heads.eval()
    heads.to(device)
    pad = tokenizer.pad_token_id
    return Checkpoint(
        model=heads,
        tokenizer=tokenizer,
        name=f"{config.model_type}:{digest(folder)}",
        limit=_limit(config, tokenizer),
        prunes=token_head is not None,
        ranks=ranks,
        plain=published(settings) is not None,
        segments=int(getattr(config, "type_vocab_size", 0) or 0) > 1,
        pad=int(pad if pad is not None else getattr(config, "pad_token_id", None) or 0),
    )


def save(model: TwoHeads, tokenizer: Any, folder: Path, about: Mapping[str, Any]) -> None:
    """Write a model in the format of transformers, with the token head under its published name.

    The folder loads as a re-ranker with ``AutoModelForSequenceClassification``, and with :func:`load`.

    Args:
        model: with both heads.
        tokenizer: of the model.
        folder: created if missing; files of an earlier model are replaced.
        about: training settings, written to ``posology.json``.
    """
    states: dict[str, Tensor] = {
        name: value.detach().cpu().contiguous()
        for name, value in model.reranker.state_dict().items()
    }
    head = model.token_head.state_dict()
    states |= dict(zip(_TOKEN_HEAD, (head["weight"].cpu(), head["bias"].cpu()), strict=True))
    with loading():
        model.reranker.save_pretrained(folder, state_dict=states)
        tokenizer.save_pretrained(folder)
    (folder / "posology.json").write_text(
        json.dumps(dict(about), indent=2) + "\n", encoding="utf-8"
    )


def _config(settings: Mapping[str, Any], folder: Path, model: str) -> Any:
    from transformers import AutoConfig

    kind = published(settings) or settings["model_type"]
    others = {name: value for name, value in settings.items() if name != "model_type"}
    try:
        config = AutoConfig.for_model(kind, **others)
    except Exception as error:
        raise ModelUnavailable(
            f"transformers has no model class for model_type {kind!r} of {folder}, and code in checkpoints is not executed: {error}",
            model=model,
        ) from error
    if not settings.keys() & {"id2label", "num_labels"}:
        config.num_labels = 1
    if config.num_labels != 1:
        raise ModelUnavailable(
            f"{folder} must be a re-ranker with one label (got {config.num_labels})",
            model=model,
        )
    if not getattr(config, "hidden_size", None):
        raise ModelUnavailable(
            f"{folder} is not an encoder: config.json has no hidden_size", model=model
        )
    return config


def _token_head(weights: dict[str, Tensor], dim: int, model: str) -> dict[str, Tensor] | None:
    """Remove the token head from the weights and return it."""
    found = [weights.pop(name, None) for name in _TOKEN_HEAD]
    if all(tensor is None for tensor in found):
        return None
    weight, bias = found
    if weight is None or bias is None or weight.shape != (2, dim) or bias.shape != (2,):
        raise ModelUnavailable(
            f"{_TOKEN_HEAD[0]} and {_TOKEN_HEAD[1]} of {model} must have 2 labels and {dim} dimensions",
            model=model,
        )
    return {"weight": weight, "bias": bias}


def _reranker(config: Any, weights: dict[str, Tensor], model: str) -> tuple[Any, bool]:
    """Return the sequence classifier, and whether the weights include its head."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

    if type(config) not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        raise ModelUnavailable(
            f"{model} is a {config.model_type}, which cannot rank texts", model=model
        )
    made: Any = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING[type(config)]
    try:
        with loading(reports=False):
            reranker, report = made.from_pretrained(
                None, config=config, state_dict=weights, output_loading_info=True
            )
    except Exception as error:
        raise ModelUnavailable(
            f"cannot load {model} as a {config.model_type}: {error}", model=model
        ) from error
    prefix = f"{made.base_model_prefix}."
    missing = {name for name in report["missing_keys"] if not name.endswith(_NO_WEIGHTS)}
    # a pooler belongs to the ranking head: bare encoders have none
    if encoder := sorted(n for n in missing if n.startswith(prefix) and ".pooler." not in n):
        raise ModelUnavailable(f"{model} is damaged: weight {encoder[0]} is missing", model=model)
    if report["mismatched_keys"]:
        raise ModelUnavailable(f"the weights of {model} have unexpected shapes", model=model)
    return reranker, not missing


def _tokenizer(folder: Path, config: Any, model: str) -> Any:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    try:
        if (folder / "tokenizer.json").is_file():
            # a fixed class, so that no file in the folder chooses one
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
        else:
            tokenizer = AutoTokenizer.from_pretrained(
                folder, config=config, local_files_only=True, trust_remote_code=False
            )
    except Exception as error:
        raise ModelUnavailable(
            f"cannot load the tokenizer of {folder}: {error}", model=model
        ) from error
    if not getattr(tokenizer, "is_fast", False):
        raise ModelUnavailable(
            f"the tokenizer of {folder} has no offsets. Use a fast tokenizer.",
            model=model,
        )
    return tokenizer


def _limit(config: Any, tokenizer: Any) -> int:
    stated = [MOST_CONTEXT]
    positions = getattr(config, "max_position_embeddings", None)
    if positions and positions < _STATED:
        # RoBERTa's positions start after that of the padding token
        shift = (
            (getattr(config, "pad_token_id", 0) or 0) + 1 if "roberta" in config.model_type else 0
        )
        stated.append(int(positions) - shift)
    longest = getattr(tokenizer, "model_max_length", None)
    if longest and longest < _STATED:
        stated.append(int(longest))
    return min(stated)
