"""llama.cpp's server, from the ``xllamacpp`` wheel, with a tiny model of random weights.

Nobody here wrote this server: it has its own grammar for JSON schemas, its own counts and its own words for errors. The
model is a Llama of 2 layers and 64 dimensions; its weights come from a seed, its vocabulary from the prompts themselves.
It says nothing that means anything, so whatever holds of its replies holds for the weights of any model.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import httpx2
import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY, WIDTH, LAYERS, INNER, HEADS = 2_048, 64, 2, 128, 4
#: tokens that the model could read; a server's window is smaller
TRAINED = 32_768
END, START = "<|end|>", "<|start|>"
#: The start of a turn is not the end of one: the server feeds the start to the grammar.
TEMPLATE = (
    "{% for m in messages %}" + START + "{{ m['role'] }}\n{{ m['content'] }}" + END + "\n{% endfor %}"
    "{% if add_generation_prompt %}" + START + "assistant\n{% endif %}"
)  # fmt: skip


def write_model(path: Path, *, seed: int, any_bytes: bool = False) -> None:
    """Write a model, about 0.5 MB.

    Args:
        path: file to write.
        seed: of the weights.
        any_bytes: whether it has a token for every byte, so that it writes what is no UTF-8; else ASCII alone.
    """
    import gguf

    tokens, merges = _vocabulary(any_bytes=any_bytes)
    random = np.random.default_rng(seed)
    out = gguf.GGUFWriter(path, "llama")
    out.add_context_length(TRAINED)
    out.add_embedding_length(WIDTH)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(INNER)
    out.add_head_count(HEADS)
    out.add_head_count_kv(HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(WIDTH // HEADS)
    out.add_vocab_size(len(tokens))
    out.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    control = {END, START}
    out.add_token_types(
        [gguf.TokenType.CONTROL if t in control else gguf.TokenType.NORMAL for t in tokens]
    )
    out.add_token_merges(merges)
    out.add_bos_token_id(tokens.index(START))
    out.add_eos_token_id(tokens.index(END))
    out.add_add_bos_token(False)
    out.add_chat_template(TEMPLATE)

    def matrix(rows: int, columns: int, scale: float = 1.0) -> NDArray[np.float16]:
        drawn = random.standard_normal((rows, columns)) * (scale / math.sqrt(columns))
        return drawn.astype(np.float16)

    out.add_tensor("token_embd.weight", matrix(len(tokens), WIDTH, math.sqrt(WIDTH)))
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            # attention that depends on the words, so that greedy replies do not fall into a loop at once
            out.add_tensor(f"blk.{layer}.{name}.weight", matrix(WIDTH, WIDTH, 3.0))
        out.add_tensor(f"blk.{layer}.ffn_gate.weight", matrix(INNER, WIDTH))
        out.add_tensor(f"blk.{layer}.ffn_up.weight", matrix(INNER, WIDTH))
        out.add_tensor(f"blk.{layer}.ffn_down.weight", matrix(WIDTH, INNER))
        for name in ("attn_norm", "ffn_norm"):
            out.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
    out.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    heads = matrix(len(tokens), WIDTH)
    # the end of a string is likely enough for replies to end within their bounds
    heads[tokens.index('"')] *= 3
    if any_bytes:
        # bytes that no ASCII text has are likely enough too, whatever the prompts that the vocabulary is made of
        heads[[i for i, t in enumerate(tokens) if len(t) == 1 and "\xa1" <= t <= "\xff"]] *= 2
    out.add_tensor("output.weight", heads)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def _vocabulary(*, any_bytes: bool) -> tuple[list[str], list[str]]:
    """Return tokens and merges of byte-level BPE over the prompts' templates."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    # printable ASCII stands for itself, a space and a line feed for what follows U+0100 by their codes
    alphabet = [*map(chr, range(0x21, 0x7F)), chr(0x100 + ord(" ")), chr(0x100 + ord("\n"))]
    if any_bytes:
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END, START],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    folder = resources.files("prompts") / "templates"
    templates = sorted(folder.iterdir(), key=lambda one: one.name)
    texts = [one.read_text(encoding="utf-8") for one in templates if one.name.endswith(".md")]
    assert any_bytes or all(text.isascii() for text in texts)
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return tokens, [" ".join(pair) for pair in model["merges"]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """The server's own counts since it started."""

    prompt: int
    predicted: int

    def __sub__(self, other: Counts) -> Counts:
        return Counts(prompt=self.prompt - other.prompt, predicted=self.predicted - other.predicted)


@dataclass(frozen=True, kw_only=True, slots=True)
class Llama:
    """A server that runs."""

    address: str

    @property
    def base_url(self) -> str:
        """Base URL of OpenAI's API."""
        return f"{self.address}/v1"

    def counts(self) -> Counts:
        """Return the tokens that it read and wrote, from its metrics: none of it comes from replies."""
        text = httpx2.get(f"{self.address}/metrics").text
        found = {
            name: int(float(value))
            for name, value in re.findall(r"^llamacpp:(\w+) (\S+)$", text, re.MULTILINE)
        }
        read = found["prompt_tokens_total"] + found["prompt_tokens_cached_total"]
        return Counts(prompt=read, predicted=found["tokens_predicted_total"])


@contextmanager
def serving(model: Path, *, window: int, slots: int = 1) -> Iterator[Llama]:
    """Run a server in a process of its own.

    Args:
        model: file of the model.
        window: tokens of input and output together.
        slots: requests that it serves at once.
    """
    command = [sys.executable, "-m", "tests.support.llama", str(model), str(window), str(slots)]
    environment = {**os.environ, "GGML_NO_BACKTRACE": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("http://"), "llama.cpp's server did not start"
            yield Llama(address=address)
        finally:
            process.stdin.close()
            process.kill()


def main() -> None:
    """Serve until standard input ends: ``MODEL WINDOW SLOTS``."""
    import xllamacpp

    model, window, slots = sys.argv[1:]
    given = xllamacpp.CommonParams()
    given.model.path = model
    given.model_alias = {"tiny"}
    given.n_ctx = int(window) * int(slots)
    given.n_parallel = int(slots)
    given.n_gpu_layers = 0
    given.cpuparams.n_threads = 1
    given.cpuparams_batch.n_threads = 1
    given.endpoint_metrics = True
    given.warmup = False
    given.verbosity = 0
    given.port = 0
    server = xllamacpp.Server(given)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    # the server's threads have no way to end
    os._exit(0)


if __name__ == "__main__":
    main()
