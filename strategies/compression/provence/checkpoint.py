"""Loads and saves models of two heads: re-rankers, published Provence checkpoints, and our own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posology.errors import ModelUnavailable
from posology.hub import digest, locate, without_progress_bars, without_reports
from strategies.compression.provence.weights import published, read_config, read_weights

if TYPE_CHECKING:
    from torch import Tensor

    from strategies.compression.provence.heads import TwoHeads

#: tokens of one window at most, whatever the model takes: checkpoints are trained at this length
MOST_CONTEXT = 512
#: names of the token head's weights in published checkpoints, which ours keep
_TOKEN_HEAD = ("token_classifier.weight", "token_classifier.bias")
#: buffers that old versions of transformers wrote
_NO_WEIGHTS = ("position_ids",)
#: a tokenizer without a limit of its own reports a huge number
_STATED = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Checkpoint:
    """A model in memory, ready for inference."""

    model: TwoHeads
    #: a fast one
    tokenizer: Any
    #: architecture and digest of the weights
    name: str
    #: tokens of one input at most, special ones included
    limit: int
    #: whether the token head is trained; else it is fresh
    prunes: bool
    #: whether the ranking head is; else it is fresh
    ranks: bool
    #: whether questions are to be in lower case and without punctuation: the published checkpoint is run so, since
    #: those of MS MARCO, which it learned from, are
    plain: bool
    #: whether the model knows segments
    segments: bool
    #: id of what inputs are filled up with
    pad: int

    @property
    def parameters(self) -> int:
        """Weights that a token meets in a pass: all but the vocabulary's."""
        skipped = self.model.reranker.base_model.get_input_embeddings().weight.numel()
        return sum(weights.numel() for weights in self.model.parameters()) - int(skipped)


def load(model: str, *, device: str = "cpu", seed: int = 0) -> Checkpoint:
    """Load a model; heads that it lacks are made fresh. Blocking, never over the network.

    No code of the checkpoint's is run: the architecture is transformers' own, and the weights are mapped
    onto it by name.

    Args:
        model: a folder, or a hub name whose files are in the local cache: a Provence checkpoint, any
            re-ranker of ``AutoModelForSequenceClassification``, or a bare encoder.
        device: ``cpu`` or ``cuda``.
        seed: of fresh heads.

    Raises:
        ModelUnavailable: there are no such files, they are damaged, or they are of another kind.
    """
    import torch
    from torch import nn

    from strategies.compression.provence.heads import TwoHeads

    folder = locate(model)
    said = read_config(folder, model)
    config = _config(said, folder, model)
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
        plain=published(said) is not None,
        segments=int(getattr(config, "type_vocab_size", 0) or 0) > 1,
        pad=int(pad if pad is not None else getattr(config, "pad_token_id", None) or 0),
    )


def save(model: TwoHeads, tokenizer: Any, folder: Path, about: Mapping[str, Any]) -> None:
    """Write a model as transformers would, and the token head with it by its published name.

    The folder loads as a re-ranker with ``AutoModelForSequenceClassification``, and with :func:`load`.

    Args:
        model: with both heads.
        tokenizer: of it.
        folder: made where it is missing; files of an earlier model are replaced.
        about: what the folder says of how it was made, in ``posology.json``.
    """
    states: dict[str, Tensor] = {
        name: value.detach().cpu().contiguous()
        for name, value in model.reranker.state_dict().items()
    }
    head = model.token_head.state_dict()
    states |= dict(zip(_TOKEN_HEAD, (head["weight"].cpu(), head["bias"].cpu()), strict=True))
    with without_progress_bars():
        model.reranker.save_pretrained(folder, state_dict=states)
        tokenizer.save_pretrained(folder)
    (folder / "posology.json").write_text(
        json.dumps(dict(about), indent=2) + "\n", encoding="utf-8"
    )


def _config(said: Mapping[str, Any], folder: Path, model: str) -> Any:
    from transformers import AutoConfig

    kind = published(said) or said["model_type"]
    others = {name: value for name, value in said.items() if name != "model_type"}
    try:
        config = AutoConfig.for_model(kind, **others)
    except Exception as error:
        raise ModelUnavailable(
            f"transformers knows no model {kind!r} of {folder}, and no code of a checkpoint's own is run: {error}",
            model=model,
        ) from error
    if not said.keys() & {"id2label", "num_labels"}:
        config.num_labels = 1
    if config.num_labels != 1:
        raise ModelUnavailable(
            f"{folder} gives {config.num_labels} labels: a re-ranker of one score is needed",
            model=model,
        )
    if not getattr(config, "hidden_size", None):
        raise ModelUnavailable(f"{folder} is no encoder: it has no hidden_size", model=model)
    return config


def _token_head(weights: dict[str, Tensor], dim: int, model: str) -> dict[str, Tensor] | None:
    """Take the token head out of the weights."""
    found = [weights.pop(name, None) for name in _TOKEN_HEAD]
    if all(tensor is None for tensor in found):
        return None
    weight, bias = found
    if weight is None or bias is None or weight.shape != (2, dim) or bias.shape != (2,):
        raise ModelUnavailable(
            f"{_TOKEN_HEAD[0]} and {_TOKEN_HEAD[1]} of {model} are not two labels of {dim} dimensions",
            model=model,
        )
    return {"weight": weight, "bias": bias}


def _reranker(config: Any, weights: dict[str, Tensor], model: str) -> tuple[Any, bool]:
    """The sequence classifier of some weights, and whether they hold its head."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

    if type(config) not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        raise ModelUnavailable(
            f"{model} is a {config.model_type}, which ranks no texts", model=model
        )
    made: Any = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING[type(config)]
    try:
        with without_reports():
            reranker, report = made.from_pretrained(
                None, config=config, state_dict=weights, output_loading_info=True
            )
    except Exception as error:
        raise ModelUnavailable(
            f"{model} does not load as a {config.model_type}: {error}", model=model
        ) from error
    prefix = f"{made.base_model_prefix}."
    missing = {name for name in report["missing_keys"] if not name.endswith(_NO_WEIGHTS)}
    # a pooler is part of the ranking head wherever it stands: bare encoders come without it
    if encoder := sorted(n for n in missing if n.startswith(prefix) and ".pooler." not in n):
        raise ModelUnavailable(f"{model} is damaged: it has no {encoder[0]}", model=model)
    if report["mismatched_keys"]:
        raise ModelUnavailable(
            f"the weights of {model} are not of the shapes that are expected", model=model
        )
    return reranker, not missing


def _tokenizer(folder: Path, config: Any, model: str) -> Any:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    try:
        if (folder / "tokenizer.json").is_file():
            # by its class, so that nothing in the folder chooses one
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
        else:
            tokenizer = AutoTokenizer.from_pretrained(
                folder, config=config, local_files_only=True, trust_remote_code=False
            )
    except Exception as error:
        raise ModelUnavailable(
            f"the tokenizer of {folder} does not load: {error}", model=model
        ) from error
    if not getattr(tokenizer, "is_fast", False):
        raise ModelUnavailable(
            f"the tokenizer of {folder} does not say where its tokens are: a fast one is needed",
            model=model,
        )
    return tokenizer


def _limit(config: Any, tokenizer: Any) -> int:
    stated = [MOST_CONTEXT]
    positions = getattr(config, "max_position_embeddings", None)
    if positions and positions < _STATED:
        # RoBERTa's positions begin behind the padding's
        shift = (
            (getattr(config, "pad_token_id", 0) or 0) + 1 if "roberta" in config.model_type else 0
        )
        stated.append(int(positions) - shift)
    longest = getattr(tokenizer, "model_max_length", None)
    if longest and longest < _STATED:
        stated.append(int(longest))
    return min(stated)
