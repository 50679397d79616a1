"""Training questions of the pruner over long texts: Evidence Inference and CovidQA."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder, heading
from posology.text.sentences import split
from training.gold import rows
from training.pruner_cases import (
    DISTRACTORS,
    Abstracts,
    Case,
    Texts,
    Words,
    fused,
    make_case,
    marked,
    part_of,
    strangers,
)

ARTICLES = "evidence_inference_articles.jsonl.gz"
PROMPTS = "evidence_inference_prompts.jsonl.gz"
COVID = "covidqa.jsonl.gz"
#: Templates of questions about a comparison; our own wordings.
FORMS = (
    "Does {i} change {o} compared with {c}?",
    "What is the effect of {i} versus {c} on {o}?",
    "How does {o} differ between {i} and {c}?",
    "{i} or {c}: which does better on {o}?",
    "Is {o} different with {i} than with {c}?",
)


def trials(
    data: Path, pool: Abstracts, texts: Texts, *, questions: int = 1_200, seed: int = 0
) -> list[Case]:
    """Return Evidence Inference's cases: the marked span's passage, and passages of other articles."""
    rng = random.Random(seed)
    articles = {row["pmcid"].removeprefix("PMC"): row["text"] for row in rows(data / ARTICLES)}
    by_article: dict[str, list[dict[str, Any]]] = {}
    for prompt in rows(data / PROMPTS):
        spans = [a for a in prompt["annotations"] or () if is_prose(a)]
        if spans and prompt["pmcid"] in articles:
            by_article.setdefault(prompt["pmcid"], []).append(prompt | {"annotations": spans})
    names = sorted(by_article)
    rng.shuffle(names)
    made: list[tuple[str, str, int, frozenset[int]]] = []
    for name in names:
        if len(made) >= questions:
            break
        prompt = rng.choice(by_article[name])
        placed = _in_article(articles[name], prompt, texts, rng)
        form = rng.choice(FORMS)
        question = form.format(
            i=lower(prompt["intervention"]),
            c=lower(prompt["comparator"]),
            o=lower(prompt["outcome"]),
        )
        question = question[0].upper() + question[1:]
        made += [(f"PMC{name}", question, n, gold) for n, gold in placed[:2]]
    words = Words(heading(texts.passages[n]) + texts.passages[n].text for _, _, n, _ in made)
    cases = []
    for document, question, n, gold in made:
        where = part_of(document)
        scores = words.scores(question)
        chosen = [(n, gold, "gold")]
        for i in np.argsort(-scores, kind="stable")[:40].tolist():
            other, _, m, _ = made[i]
            allowed = part_of(other) == "train" or where != "train"
            if other != document and allowed and len(chosen) <= 3:
                chosen.append((m, frozenset(), "hard"))
        chosen += strangers(pool, texts, where, rng, 1)
        cases.append(make_case("trials", where, question, chosen))
    return cases


def is_prose(annotation: dict[str, Any]) -> bool:
    """Return whether an annotator marked words, and not a table or a whole section."""
    text = annotation["evidence"] or ""
    letters = sum(c.isalpha() or c == " " for c in text)
    return 40 <= len(text) <= 1_200 and "\n" not in text.strip() and letters / len(text) > 0.7


def lower(text: str) -> str:
    """Lower a name's first letter, unless it is an acronym."""
    text = text.strip().rstrip(".")
    return text if len(text) > 1 and text[1].isupper() else text[:1].lower() + text[1:]


def _in_article(
    text: str, prompt: dict[str, Any], texts: Texts, rng: random.Random
) -> list[tuple[int, frozenset[int]]]:
    """Return passages of a few sentences around each marked span, with their gold sentences."""
    title = text.split("\n", 2)[1].strip() if text.startswith("TITLE:") else ""
    sentences = split(text)
    passages: list[tuple[int, frozenset[int]]] = []
    done: set[int] = set()
    for annotation in prompt["annotations"]:
        start, end = annotation["start"], annotation["end"]
        hit = [
            k
            for k, s in enumerate(sentences)
            if min(s.end, end) - max(s.start, start) > 0.5 * min(s.end - s.start, end - start)
        ]
        if not hit or hit[0] in done or len(hit) > 4:
            continue
        length = rng.choice((3, 6, 8, 10, 12))
        first = max(0, hit[0] - rng.randrange(length))
        last = min(len(sentences), max(first + length, hit[-1] + 1))
        done.update(range(first, last))
        begin, stop = sentences[first].start, sentences[last - 1].end
        passage = text[begin:stop]
        if len(passage) > 5_000:
            continue
        n = texts.add(title, passage)
        marks = [(sentences[k].start - begin, 0) for k in hit]
        gold = marked(texts.sentences[n], marks)
        # the annotators' other spans on the same prompt that are in this passage
        for other in prompt["annotations"]:
            if other["start"] != start and begin <= other["start"] < stop:
                gold |= marked(texts.sentences[n], [(other["start"] - begin, 0)])
        if gold:
            passages.append((n, gold))
    return passages


def covid(
    data: Path, texts: Texts, embedder: SentenceTransformerEmbedder, seed: int = 0
) -> list[Case]:
    """Return CovidQA's cases: the passage with the answer and four others."""
    rng = random.Random(seed)
    chunks: list[tuple[str, int]] = []
    questions: list[tuple[str, str, int, frozenset[int]]] = []
    for row in rows(data / COVID):
        text = row["context"]
        sentences = split(text)
        title = text.split("\n", 1)[0][:200]
        first = 0
        while first < len(sentences):
            last = min(first + rng.choice((4, 6, 8, 10)), len(sentences))
            begin, stop = sentences[first].start, sentences[last - 1].end
            first = last
            if stop - begin > 5_000:
                continue
            n = texts.add(title, text[begin:stop])
            document = str(row["document_id"])
            chunks.append((document, n))
            for qa in row["qas"]:
                spans = [
                    (a["answer_start"] - begin, 0)
                    for a in qa["answers"]
                    if begin <= a["answer_start"] < stop
                ]
                gold = marked(texts.sentences[n], spans)
                # an answer of many sentences marks all of them
                for a in qa["answers"]:
                    if begin <= a["answer_start"] < stop:
                        end = a["answer_start"] + len(a["text"]) - begin
                        gold |= {
                            k
                            for k, s in enumerate(texts.sentences[n])
                            if a["answer_start"] - begin <= s.start < end - 10
                        }
                if gold and not qa.get("is_impossible"):
                    questions.append((document, qa["question"], n, gold))
    # the answers' passages, and as many again
    wanted = {n for _, _, n, _ in questions}
    extra = [n for _, n in chunks if n not in wanted]
    rng.shuffle(extra)
    usable = [(d, n) for d, n in chunks if n in wanted or n in set(extra[: len(wanted)])]
    passages = [texts.passages[n] for _, n in usable]
    vectors = np.stack([e.vector for e in embedder.embed_passages(passages, [()] * len(passages))])
    words = Words(heading(p) + p.text for p in passages)
    asked = embedder.embed_queries([q for _, q, _, _ in questions])
    seen: Counter[str] = Counter()
    cases = []
    for (document, question, n, gold), vector in zip(questions, asked, strict=True):
        seen[question] += 1
        if seen[question] > 2:
            continue
        where = part_of(document)
        chosen = [(n, gold, "gold")]
        for i in fused([vectors @ vector, words.scores(question)]):
            other, m = usable[i]
            # others of its own article may answer it too, unmarked
            if other != document and (where != "train" or part_of(other) == "train"):
                chosen.append((m, frozenset(), "hard"))
            if len(chosen) > DISTRACTORS:
                break
        cases.append(make_case("covid", where, question, chosen))
    return cases
