"""Measures how long replies are, for the bound on a call's output at each stage.

Usage: ``python -m evals.replies [--data PATH]``.

Replies in each stage's schema are put together from experts' texts, and counted by two byte-level BPE tokenizers
trained on the spot; the larger count is used:

- answer: an ideal answer of BioASQ with its snippets as quotes, one and two a passage for up to eight passages, or a
  long answer of PubMedQA with a sentence of every section of its abstract;
- extract: BioASQ snippets of three documents, up to two findings each, with the stating sentence and its quotes; or
  PubMedQA's abstract, a finding for every section;
- reduce: an ideal answer, the labels of up to sixteen findings, and a claim with its reason for each of the answer's
  sentences, at most four.

Rewriters have a bound that depends on the words asked for: printed are the tokens a word of PubMedQA's abstracts.

The built-in bound is a quarter more than the 99th percentile, in steps of 256; a longer reply is cut and refused as
truncated. Fails if a built-in bound is not above the 99th percentile.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel

from evals.byte_bpe import counts, everyday, medical, train
from orchestrator.training.artefacts.frequent_words import FILES, Texts
from orchestrator.training.artefacts.gold import rows
from posology.text.sentences import split
from posology.types import Stage
from prompts.answer import AnswerReply, Quote
from prompts.extract import ExtractReply, Statement
from prompts.fence import label
from prompts.lengths import REPLY_TOKENS, TOKENS_A_WORD, reply_tokens
from prompts.reduce import LETTER, Claim, ReduceReply

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_QUESTIONS, _ABSTRACTS = "bioasq_7b-10b.jsonl.gz", "pubmedqa_train.jsonl.gz"
_PASSAGES, _PARTITION, _FINDINGS, _CLAIMS = 8, 3, 16, 4
_TRAINED = ((everyday, 50_000), (medical, 50_000))


def _sentences(text: str) -> list[str]:
    return [sentence.of(text) for sentence in split(text)] or [text]


def _documents(question: dict[str, Any]) -> list[list[str]]:
    """The snippets of each document, in the order in which documents are first quoted."""
    found: dict[str, list[str]] = {}
    for snippet in question["snippets"]:
        found.setdefault(snippet["document"], []).append(snippet["text"])
    return list(found.values())


def _quotes(documents: Sequence[Sequence[str]], each: int) -> list[Quote]:
    return [
        Quote(passage=label(place), quote=text)
        for place, snippets in enumerate(documents)
        for text in snippets[:each]
    ]


def _answers(question: dict[str, Any]) -> Iterator[BaseModel]:
    documents = _documents(question)[:_PASSAGES]
    choice = question["exact_answer"] if question["type"] == "yesno" else None
    for each in (1, 2):
        yield AnswerReply(
            answerable=True,
            answer=question["ideal_answer"][0],
            choice=choice,
            quotes=_quotes(documents, each),
        )


def _extractions(question: dict[str, Any]) -> Iterator[BaseModel]:
    documents = iter(_documents(question))
    while part := list(islice(documents, _PARTITION)):
        findings = [
            Statement(
                statement=_sentences(text)[-1], quotes=[Quote(passage=label(place), quote=text)]
            )
            for place, snippets in enumerate(part)
            for text in snippets[:2]
        ]
        yield ExtractReply(found=True, findings=findings)


def _reductions(question: dict[str, Any]) -> Iterator[BaseModel]:
    answer = question["ideal_answer"][0]
    labels = [label(place, LETTER) for place in range(len(question["snippets"]))][:_FINDINGS]
    yield ReduceReply(
        answerable=True,
        answer=answer,
        choice=question["exact_answer"] if question["type"] == "yesno" else None,
        evidence=labels,
        claims=[
            Claim(
                claim=sentence,
                supporting=labels[::2],
                opposing=labels[1::2],
                resolution="supporting",
                reason=sentence,
            )
            for sentence in _sentences(answer)[:_CLAIMS]
        ],
    )


def _of_abstract(row: dict[str, Any]) -> Iterator[tuple[Stage, BaseModel]]:
    quotes = [Quote(passage=label(0), quote=_sentences(text)[0]) for text in row["contexts"]]
    yield (
        Stage.ANSWER,
        AnswerReply(
            answerable=True, answer=row["long_answer"], choice=row["answer"], quotes=quotes
        ),
    )
    findings = [Statement(statement=quote.quote, quotes=[quote]) for quote in quotes]
    yield Stage.EXTRACT, ExtractReply(found=True, findings=findings)


def _replies(data: Path) -> dict[Stage, list[str]]:
    found: dict[Stage, list[str]] = {Stage.ANSWER: [], Stage.EXTRACT: [], Stage.REDUCE: []}
    kinds = {Stage.ANSWER: _answers, Stage.EXTRACT: _extractions, Stage.REDUCE: _reductions}
    for question in rows(data / _QUESTIONS):
        if not question["snippets"] or not question["ideal_answer"]:
            continue
        for stage, made in kinds.items():
            found[stage] += [reply.model_dump_json() for reply in made(question)]
    for row in rows(data / _ABSTRACTS):
        for stage, reply in _of_abstract(row):
            found[stage].append(reply.model_dump_json())
    return found


def _a_word(tokenizer: Tokenizer, data: Path) -> tuple[float, float]:
    """Tokens a word of all abstracts together, and the 99th percentile of an abstract."""
    texts = [" ".join(row["contexts"]) for row in rows(data / _ABSTRACTS)]
    words = np.array([len(text.split()) for text in texts])
    tokens = np.array(counts(tokenizer, texts))
    return float(tokens.sum() / words.sum()), float(np.percentile(tokens / words, 99))


def main(argv: list[str] | None = None) -> int:
    """Count, and print a table."""
    parser = argparse.ArgumentParser(prog="evals.replies", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    data: Path = parser.parse_args(argv).data
    needed = (*FILES, _QUESTIONS, _ABSTRACTS)
    if missing := [name for name in needed if not (data / name).exists()]:
        sys.exit(f"{data} has no {missing[0]}. Pass --data with the folder of the data sets.")
    texts = Texts.read(data)
    tokenizers = [train(made(texts), size=size, pattern="cl100k") for made, size in _TRAINED]
    enough = True
    print("| stage | replies | p50 | p95 | p99 | max | built in | within |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for stage, replies in _replies(data).items():
        tokens = np.max([counts(tokenizer, replies) for tokenizer in tokenizers], axis=0)
        p50, p95, p99 = np.percentile(tokens, [50, 95, 99])
        bound = reply_tokens(stage)
        enough &= bool(p99 <= bound)
        print(
            f"| {stage} | {len(replies):,} | {p50:.0f} | {p95:.0f} | {p99:.0f} | {tokens.max()} "
            f"| {bound} | {(tokens <= bound).mean():.2%} |"
        )
    mean, p99 = np.max([_a_word(tokenizer, data) for tokenizer in tokenizers], axis=0)
    print(f"tokens a word of an abstract: {mean:.2f}, p99 {p99:.2f}, built in {TOKENS_A_WORD}")
    print(f"without figures: {', '.join(s for s in REPLY_TOKENS if s not in _replies(data))}")
    return 0 if enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
