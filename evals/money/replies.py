"""Measures how long replies are, for the bound on a call's output at each stage.

Usage: ``python -m evals.money.replies [--data PATH]``.

Replies in each stage's schema, in both forms of quotes, are put together from experts' texts, and counted by two
byte-level BPE tokenizers trained on the spot; the larger count is used:

- answer: an ideal answer of BioASQ with its snippets as quotes, one and two a passage for up to eight passages, or a
  long answer of PubMedQA with a sentence of every section of its abstract;
- extract: BioASQ snippets of three documents, up to two findings each, with the stating sentence and its quotes; or
  PubMedQA's abstract, a finding for every section;
- reduce: an ideal answer, the labels of up to sixteen findings, and a claim with its reason for each of the answer's
  sentences, at most as many as the schema takes.

Where replies name sentences, a statement is a sentence of the text, and names as many sentences as its schema takes.
All lists are as long as the schema takes at most.

Rewriters have a bound that depends on the words asked for: printed are the tokens a word of PubMedQA's abstracts.

The built-in bound is above the 99th percentile; a longer reply is cut and refused as truncated. Fails if a bound cuts
more than 1 % of the replies of its stage and form.
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

from evals.money.byte_bpe import counts, everyday, medical, train
from posology.text.numbering import name
from posology.text.sentences import split
from posology.types import QUOTE_FORMS, QuoteForm, Stage
from prompts.answer import AnswerReply, CitedReply, Quote, Said
from prompts.extract import CitedExtract, CitedStatement, ExtractReply, Statement
from prompts.fence import label
from prompts.lengths import (
    CLAIMS,
    FINDING_SENTENCES,
    REPLY_TOKENS,
    STATEMENT_SENTENCES,
    STATEMENTS,
    TOKENS_A_WORD,
    most_findings,
    reply_tokens,
)
from prompts.reduce import LETTER, CitedReduce, Claim, ReduceReply
from training.frequent_words import FILES, Texts
from training.gold import rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_QUESTIONS, _ABSTRACTS = "bioasq_7b-10b.jsonl.gz", "pubmedqa_train.jsonl.gz"
_PASSAGES, _PARTITION, _FINDINGS = 8, 3, 16
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


def _names(place: int, count: int) -> list[str]:
    """Names of sentences of one passage; the longest that are usual."""
    return [name(place, 9 + at) for at in range(count)]


def _said(text: str) -> list[Said]:
    """The sentences of a text as statements; what exceeds the schema's number stands in the last."""
    sentences = _sentences(text)
    parts = [*sentences[: STATEMENTS - 1], " ".join(sentences[STATEMENTS - 1 :])]
    return [
        Said(text=part, sentences=_names(place, STATEMENT_SENTENCES))
        for place, part in enumerate(parts)
        if part
    ]


def _verdict(question: dict[str, Any]) -> str | None:
    return question["exact_answer"] if question["type"] == "yesno" else None


def _answers(question: dict[str, Any], form: QuoteForm) -> Iterator[BaseModel]:
    documents = _documents(question)[:_PASSAGES]
    answer, choice = question["ideal_answer"][0], _verdict(question)
    if form == "sentences":
        yield CitedReply(answerable=True, statements=_said(answer), choice=choice)
        return
    for each in (1, 2):
        yield AnswerReply(
            answerable=True, answer=answer, choice=choice, quotes=_quotes(documents, each)
        )


def _extraction(stated: Sequence[tuple[int, str, str]], form: QuoteForm) -> BaseModel:
    """A reply of findings: each its passage's place, its statement, and the quote."""
    if form == "sentences":
        cited = [
            CitedStatement(statement=text, sentences=_names(place, FINDING_SENTENCES))
            for place, text, _ in stated
        ]
        return CitedExtract(found=True, findings=cited)
    findings = [
        Statement(statement=text, quotes=[Quote(passage=label(place), quote=quote)])
        for place, text, quote in stated
    ]
    return ExtractReply(found=True, findings=findings)


def _extractions(question: dict[str, Any], form: QuoteForm) -> Iterator[BaseModel]:
    documents = iter(_documents(question))
    while part := list(islice(documents, _PARTITION)):
        stated = [
            (place, _sentences(text)[-1], text)
            for place, snippets in enumerate(part)
            for text in snippets[:2]
        ]
        yield _extraction(stated[: most_findings(len(part))], form)


def _reductions(question: dict[str, Any], form: QuoteForm) -> Iterator[BaseModel]:
    answer, choice = question["ideal_answer"][0], _verdict(question)
    letter = "" if form == "sentences" else LETTER
    labels = [label(place, letter) for place in range(len(question["snippets"]))][:_FINDINGS]
    claims = [
        Claim(
            claim=sentence,
            supporting=labels[::2],
            opposing=labels[1::2],
            resolution="supporting",
            reason=sentence,
        )
        for sentence in _sentences(answer)[:CLAIMS]
    ]
    if form == "sentences":
        yield CitedReduce(answerable=True, statements=_said(answer), choice=choice, claims=claims)
    else:
        yield ReduceReply(
            answerable=True, answer=answer, choice=choice, evidence=labels, claims=claims
        )


def _of_abstract(row: dict[str, Any], form: QuoteForm) -> Iterator[tuple[Stage, BaseModel]]:
    quotes = [_sentences(text)[0] for text in row["contexts"]]
    answer, choice = row["long_answer"], row["answer"]
    if form == "sentences":
        yield Stage.ANSWER, CitedReply(answerable=True, statements=_said(answer), choice=choice)
    else:
        copied = [Quote(passage=label(0), quote=text) for text in quotes]
        yield (
            Stage.ANSWER,
            AnswerReply(answerable=True, answer=answer, choice=choice, quotes=copied),
        )
    stated = [(0, text, text) for text in quotes[: most_findings(_PARTITION)]]
    yield Stage.EXTRACT, _extraction(stated, form)


def _replies(data: Path, form: QuoteForm) -> dict[Stage, list[str]]:
    found: dict[Stage, list[str]] = {Stage.ANSWER: [], Stage.EXTRACT: [], Stage.REDUCE: []}
    kinds = {Stage.ANSWER: _answers, Stage.EXTRACT: _extractions, Stage.REDUCE: _reductions}
    for question in rows(data / _QUESTIONS):
        if not question["snippets"] or not question["ideal_answer"]:
            continue
        for stage, made in kinds.items():
            found[stage] += [reply.model_dump_json() for reply in made(question, form)]
    for row in rows(data / _ABSTRACTS):
        for stage, reply in _of_abstract(row, form):
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
    parser = argparse.ArgumentParser(prog="evals.money.replies", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    data: Path = parser.parse_args(argv).data
    needed = (*FILES, _QUESTIONS, _ABSTRACTS)
    if missing := [name for name in needed if not (data / name).exists()]:
        sys.exit(f"{data} has no {missing[0]}. Pass --data with the folder of the data sets.")
    texts = Texts.read(data)
    tokenizers = [train(made(texts), size=size, pattern="cl100k") for made, size in _TRAINED]
    enough = True
    print("| quotes | stage | replies | p50 | p95 | p99 | max | built in | within |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for form in QUOTE_FORMS:
        for stage, replies in _replies(data, form).items():
            tokens = np.max([counts(tokenizer, replies) for tokenizer in tokenizers], axis=0)
            p50, p95, p99 = np.percentile(tokens, [50, 95, 99])
            bound = reply_tokens(stage, quotes=form)
            enough &= bool(p99 <= bound)
            print(
                f"| {form} | {stage} | {len(replies):,} | {p50:.0f} | {p95:.0f} | {p99:.0f} | {tokens.max()} "
                f"| {bound} | {(tokens <= bound).mean():.2%} |"
            )
    mean, p99 = np.max([_a_word(tokenizer, data) for tokenizer in tokenizers], axis=0)
    print(f"tokens a word of an abstract: {mean:.2f}, p99 {p99:.2f}, built in {TOKENS_A_WORD}")
    print(
        f"without figures: {', '.join(REPLY_TOKENS['sentences'].keys() - _replies(data, 'sentences').keys())}"
    )
    return 0 if enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
