"""Trains the packaged pruner: the codec of token vectors, the answer network, and the head.

``python -m training.pruner --data DIR --work DIR [--codec] [--write]``. Without ``--write`` the
packaged files stay. Token vectors are cached in ``--work``. A run takes about 40 minutes on two cores, three quarters
of it for encoding. Only ``--codec`` fits a new codec: indices with the old one must then be ingested again. Figures:
``strategies/compression/models/MODEL_CARD.md``.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.hub import PACKAGED, published
from posology.index.embedders import load
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder, heading
from strategies.compression.late import codec as codecs
from strategies.compression.late import head as heads
from strategies.compression.late.codec import KEPT, MODELS, LateCodec
from strategies.compression.late.features import Weights, kind
from strategies.compression.late.head import Head
from training.gold import DATA, WORK, rows
from training.pruner_cases import POOL
from training.pruner_corpora import Corpus, coded, open_corpora
from training.pruner_head import fit_head, packed
from training.pruner_scores import Recorded, calibrate, observed

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

#: Weight of a word's prior in its centre, in token vectors.
_PRIOR = 4
#: Hidden units of the answer network.
HIDDEN = 32
NETWORKS = 3
EPOCHS = 8


def fit_codec(corpora: Sequence[Corpus], embedder: SentenceTransformerEmbedder) -> bytes:
    """Return the file of a codec: centres of words and principal directions of the residuals.

    A word that is seldom or never seen gets the centre that a linear regression expects from its input
    embedding and from its vector when it stands alone.
    """
    kept = [_training_tokens(corpus) for corpus in corpora]
    vectors = np.concatenate([v for v, _ in kept])
    ids = np.concatenate([i for _, i in kept])
    alone, inputs = _words(embedder)
    size, dim = alone.shape
    count = np.bincount(ids, minlength=size).astype(np.float32)
    sums = np.zeros((size, dim), np.float32)
    for begin in range(0, len(ids), 100_000):
        stop = begin + 100_000
        np.add.at(sums, ids[begin:stop], vectors[begin:stop].astype(np.float32))
    known = np.concatenate([_unit(inputs), alone, np.ones((size, 1), np.float32)], axis=1)
    weight = np.minimum(count, 20)[:, None]
    normal = (known * weight).T @ known + 30 * np.eye(known.shape[1])
    slopes = np.linalg.solve(normal, (known * weight).T @ (sums / np.maximum(count, 1)[:, None]))
    prior = (known @ slopes).astype(np.float32)
    centres = (sums + _PRIOR * prior) / (count + _PRIOR)[:, None]
    picked = np.random.default_rng(0).choice(len(ids), min(120_000, len(ids)), replace=False)
    seen, of = vectors[picked].astype(np.float32), ids[picked]
    # without itself, or rare words would seem to lie on their centres
    without = (sums[of] - seen + _PRIOR * prior[of]) / (count[of] - 1 + _PRIOR)[:, None]
    left = (seen - without).astype(np.float64)
    variances, directions = np.linalg.eigh(left.T @ left / len(left))
    rotation = np.ascontiguousarray(directions[:, ::-1]).astype(np.float32)
    turned = centres @ rotation
    scales = (np.abs(turned).max(axis=1) / 127 + 1e-9).astype(np.float32)
    file = io.BytesIO()
    np.savez_compressed(
        file,
        format=codecs.FORMAT,
        embedder=embedder.name,
        rotation=rotation.astype(np.float16),
        centres=np.round(turned / scales[:, None]).astype(np.int8),
        scales=scales,
        deviations=np.sqrt(variances[::-1][:KEPT]).astype(np.float32),
    )
    return file.getvalue()


def _training_tokens(corpus: Corpus) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
    bank = corpus.bank
    aside = {p for c in corpus.cases if c.part == "test" for p in c.passages}
    passages = sorted({p for c in corpus.cases if c.part == "train" for p in c.passages} - aside)
    rows = np.concatenate([np.arange(bank.first[p], bank.first[p + 1]) for p in passages])
    return bank.tokens[rows], bank.ids[rows].astype(np.int64)


def _words(
    embedder: SentenceTransformerEmbedder,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return for every vocabulary entry its vector when alone, and its input embedding."""
    from safetensors.numpy import load_file

    weights = load_file(str(next(published().glob("*.safetensors"))))
    inputs = next(w for name, w in weights.items() if "word_embeddings" in name).astype(np.float32)
    tokenizer = _tokenizer()
    texts = [(tokenizer.id_to_token(i) or "").removeprefix("##") for i in range(len(inputs))]
    alone = np.zeros_like(inputs)
    for begin in range(0, len(texts), 2_000):
        for i, one in enumerate(embedder.token_vectors(texts[begin : begin + 2_000]), begin):
            # the mean, because a word may be cut into several pieces when alone
            if len(one.ids):
                alone[i] = one.vectors.mean(axis=0)
    return alone, inputs


def _tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    found = Tokenizer.from_file(str(PACKAGED / "tokenizer.json"))
    found.no_truncation()
    found.no_padding()
    return found


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    unit: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return unit


def rarity(data: Path, corpus: Corpus) -> NDArray[np.float32]:
    """Return ``-log`` of the share of texts with each token, half of abstracts and half of an encyclopaedia."""
    tokenizer = _tokenizer()
    size = tokenizer.get_vocab_size()
    pool = rows(data / POOL)[::4]
    abstracts = [f"{row.get('title') or ''}. {row['text']}" for row in pool]
    share = np.zeros(size)
    for encoding in tokenizer.encode_batch(abstracts, add_special_tokens=False):
        share[np.unique(encoding.ids)] += 0.5 / len(abstracts)
    passages = sorted({p for c in corpus.cases if c.part == "train" for p in c.passages})
    for p in passages:
        ids = corpus.bank.ids[corpus.bank.first[p] : corpus.bank.first[p + 1]]
        share[np.unique(ids)] += 0.5 / len(passages)
    return np.maximum(-np.log(share + 1e-3), 0.1).astype(np.float32)


def digits() -> NDArray[np.bool_]:
    """Return which tokens have a digit."""
    tokenizer = _tokenizer()
    names = [tokenizer.id_to_token(i) or "" for i in range(tokenizer.get_vocab_size())]
    return np.array([any(c.isdigit() for c in name) for name in names])


def answers(
    corpus: Corpus, codes: NDArray[np.uint8], codec: LateCodec, idf: NDArray[np.float32]
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield for every training question of SQuAD the gold paragraph's tokens, and which are in the answer."""
    tokenizer = _tokenizer()
    for case in corpus.cases:
        if case.part != "train" or not case.spans:
            continue
        p = case.passages[0]
        passage = corpus.texts.passages[p]
        head = len(heading(passage))
        places = np.array(
            tokenizer.encode(head * " " + passage.text, add_special_tokens=False).offsets
        )
        begin, end = corpus.bank.first[p], corpus.bank.first[p + 1]
        begin += int(corpus.bank.counts[p][0])
        if len(places) != end - begin:
            continue
        wanted = np.zeros(len(places), np.bool_)
        for a, b in case.spans:
            wanted |= (places[:, 0] < b + head) & (places[:, 1] > a + head)
        asked = corpus.asked[case.question][0]
        vectors = codec.vectors(codes[begin:end])
        best = (vectors @ asked.vectors.T).max(axis=1)
        same = (corpus.bank.ids[begin:end, None] == asked.ids).any(axis=1)
        weights = idf[asked.ids]
        mean, rare = asked.vectors.mean(axis=0), weights @ asked.vectors / weights.sum()
        yield vectors, wanted, best, same, np.concatenate([mean, rare, kind(case.question)])


def fit_answers(
    paragraphs: Sequence[tuple[NDArray[Any], ...]],
    *,
    epochs: int = 5,
    size: int = 64,
    batch: int = 32,
) -> dict[str, NDArray[np.float32]]:
    """Train the small network that separates the answer's tokens from the paragraph's others."""
    import torch
    from torch import nn
    from torch.nn import functional

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    dim = paragraphs[0][0].shape[1]
    token, question = nn.Linear(dim, HIDDEN, bias=False), nn.Linear(len(paragraphs[0][4]), HIDDEN)
    nn.init.normal_(token.weight, 0, 0.5)
    nn.init.normal_(question.weight, 0, 0.2)
    echo, out = nn.Parameter(torch.zeros(2, HIDDEN)), nn.Parameter(torch.randn(HIDDEN) * 0.3)
    parameters = [*token.parameters(), *question.parameters(), echo, out]
    optimiser = torch.optim.AdamW(parameters, lr=3e-3, weight_decay=0.02)
    steps = epochs * (len(paragraphs) // batch + 1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps + 1)
    drop = nn.Dropout(0.1)
    for _ in range(epochs):
        order = rng.permutation(len(paragraphs))
        for begin in range(0, len(order), batch):
            picked = [paragraphs[i] for i in order[begin : begin + batch]]
            x = np.zeros((len(picked), size, dim), np.float32)
            known = np.zeros((4, len(picked), size), np.float32)
            for r, (vectors, wanted, best, same, _) in enumerate(picked):
                rows = rng.permutation(len(vectors))[:size]
                if not wanted[rows].any():
                    rows[:8] = np.resize(np.flatnonzero(wanted), 8)[: len(rows[:8])]
                x[r, : len(rows)] = vectors[rows]
                for place, values in enumerate((wanted, best, same, np.ones(len(vectors)))):
                    known[place, r, : len(rows)] = values[rows]
            y, best, same, there = (torch.from_numpy(one) for one in known)
            about = torch.from_numpy(np.stack([one[4] for one in picked]).astype(np.float32))
            hidden = token(torch.from_numpy(x)) + question(drop(about))[:, None]
            hidden = torch.relu(hidden + best[..., None] * echo[0] + same[..., None] * echo[1])
            logits = (drop(hidden) @ out).masked_fill(there == 0, -30)
            of_answer = torch.logsumexp(logits.masked_fill(y == 0, -30), 1)
            loss: Any = (torch.logsumexp(logits, 1) - of_answer).mean()
            loss = loss + 0.5 * functional.binary_cross_entropy_with_logits(
                logits[there > 0], y[there > 0]
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    made = {"token": token.weight, "question": question.weight.T, "bias": question.bias}
    return {n: _array(w) for n, w in (made | {"echo": echo, "out": out}).items()}


def _array(tensor: torch.Tensor) -> NDArray[np.float32]:
    return tensor.detach().numpy().astype(np.float32).copy()


def main() -> None:
    """Train codec, answer network and head; write them with ``--write``."""
    parser = argparse.ArgumentParser(
        prog="training.pruner",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=WORK / "pruner")
    parser.add_argument("--codec", action="store_true", help="fit a new codec")
    parser.add_argument("--write", action="store_true", help="replace the packaged files")
    parser.add_argument(
        "--questions",
        type=int,
        help="questions of every set and part, for a trial; not with --write",
    )
    given = parser.parse_args()
    if given.questions is not None and given.write:
        parser.error("--questions trains a trial only: omit --write")
    given.work.mkdir(parents=True, exist_ok=True)
    embedder = load(None)
    corpora = open_corpora(given.data, given.work, embedder, given.questions)
    content = fit_codec(corpora, embedder) if given.codec else (MODELS / codecs.FILE).read_bytes()
    codec = LateCodec.read(content)
    codes = [coded(corpus.bank, codec) for corpus in corpora]
    idf = rarity(given.data, corpora[0])
    learned = fit_answers(list(answers(corpora[0], codes[0], codec, idf)))
    weights = Weights(idf=idf, digits=digits(), **learned)
    records: list[Recorded] = []
    for corpus, of in zip(corpora, codes, strict=True):
        records += [observed(case, corpus, of, codec, weights) for case in corpus.cases]
    networks = [
        fit_head([r for r in records if r.case.part == "train"], seed=seed, epochs=EPOCHS)
        for seed in range(NETWORKS)
    ]
    head = Head.read(packed(networks, codec, weights))
    file = packed(networks, codec, weights, chosen=calibrate(head, records))
    print(f"codec {codec.name}, head {Head.read(file).version}")
    if given.write:
        (MODELS / codecs.FILE).write_bytes(content)
        (MODELS / heads.FILE).write_bytes(file)


if __name__ == "__main__":
    main()
