"""Evidence tables of full texts: cells, quotes in their place, dollars and time; and how near to people's readings they are.

Usage: ``python -m evals.tables [--data PATH] [--articles N] [--gold N]``.

``posology table`` reads the first N trials of Evidence Inference with the preset pico, by the offline reader and by the stub
provider, whose replies, tokens and so dollars show the way of a table and nothing about a model. Every value must have a quote, and every quote must
stand at its offsets in the article; otherwise the exit status is 1.

``--gold`` compares the offline reader with the prompts of that collection, whose authors wrote down interventions, comparators
and outcomes of articles in words of their own, and marked what shows the effect. A cell counts as near if its quotes have at
least half of the stems of one of the article's texts; an effect, if its quote overlaps a marked span of the article. Beside it:
a sentence of the same article drawn at random. Prompts name several outcomes, primary or not, so this is no accuracy.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import anyio

from posology.corpus.files import read
from posology.corpus.items import Record
from posology.llm.offline.choice import Scores
from posology.llm.offline.tabulating import tabulated
from posology.published.tables.forms import TableOutput
from posology.testing import Reply, StubProvider
from posology.testing.provider.echo import echo
from posology.text.sentences import split
from posology.types import Call, Completion, Excerpt, Finish, Passage
from posology.types.tables import Document
from prompts.tables.cells import TableReply
from strategies.compression.checked import stems
from strategies.tables.presets import PICO
from strategies.tables.reading import Reading
from training.gold import DATA, rows

_OFFLINE, _PAID = "offline:extractive", "openai:gpt-4o-mini"
_COMMAND = "from orchestrator.cli.app import main; main()"
#: fields of the preset that prompts of the collection have, too
_NAMED = ("intervention", "comparator", "outcome")
_SHARE = 0.5


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--articles", type=int, default=20)
    parser.add_argument("--gold", type=int, default=150)
    args = parser.parse_args()
    texts = {
        one["pmcid"]: one["text"]
        for one in rows(args.data / "evidence_inference_articles.jsonl.gz")
    }
    print(
        "| model | documents | cells | values | quotes in place | refused | not reported | dollars | seconds |"
    )
    print("| --- " * 9 + "|")
    few = dict(islice(texts.items(), args.articles))
    good = [_read(few, model) for model in (_OFFLINE, _PAID) if few]
    if args.gold:
        anyio.run(_compare, texts, args.data, args.gold)
    if not all(good):
        sys.exit("a value has no quote, or a quote is not in its article")


def _read(texts: Mapping[str, str], model: str) -> bool:
    """Read articles by the command, print a line, and return whether every value has a quote in its place."""
    with tempfile.TemporaryDirectory() as folder, StubProvider(lambda _: Reply(text=echo)) as stub:
        papers = Path(folder) / "papers.jsonl"
        lines = (json.dumps({"id": name, "text": text}) for name, text in texts.items())
        papers.write_text("\n".join(lines), encoding="utf-8")
        environment = {
            **os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": stub.openai_url, "POSOLOGY_HOME": folder,
        }  # fmt: skip
        environment.pop("POSOLOGY_REDIS_URL", None)
        command = ["table", str(papers), "-o", f"{folder}/t.csv", "--model", model, "--json"]
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", _COMMAND, *command],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
        )
        seconds = time.perf_counter() - started
        # long records are read as parts
        shown = {
            one.passage.id: one.passage.text for one in read(papers) if isinstance(one, Record)
        }
    out = TableOutput.model_validate_json(done.stdout)
    cells = [cell for row in out.rows for cell in row.cells]
    values = [cell for cell in cells if cell.value is not None]
    quotes = [quote for cell in values for quote in cell.quotes]
    stand = sum(shown[one.passage][one.start : one.end] == one.quote for one in quotes)
    refused = sum(cell.value is None and cell.refused is not None for cell in cells)
    print(f"| {model if model == _OFFLINE else 'stub'} | {len(out.rows)} | {len(cells)} | {len(values)} | {stand} of "
          f"{len(quotes)} | {refused} | {len(cells) - len(values) - refused} | {out.spent_usd:f} | {seconds:.0f} |")  # fmt: skip
    return stand == len(quotes) and all(cell.quotes for cell in values)


async def _compare(texts: Mapping[str, str], data: Path, most: int) -> None:
    """Print how often cells of the offline reader are near to what people wrote down."""
    prompts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in rows(data / "evidence_inference_prompts.jsonl.gz"):
        prompts[f"PMC{one['pmcid']}"].append(one)
    lot = random.Random(0)
    chosen = lot.sample(sorted(prompts.keys() & texts.keys()), most)
    filled, near, by_chance = Counter[str](), Counter[str](), Counter[str]()
    fields = tuple(one for one in PICO if one.name in (*_NAMED, "effect"))
    marked = 0
    for name in chosen:
        document = Document.of([Passage(id=name, text=texts[name])])
        row = await Reading(fields=fields, model=_OFFLINE)(document, _complete)
        spans = [(s["start"], s["end"]) for one in prompts[name] for s in one["annotations"]]
        marked += bool(spans)
        for cell in row.cells:
            if cell.value is None or (cell.field.name == "effect" and not spans):
                continue
            other = lot.choice(split(texts[name]))
            filled[cell.field.name] += 1
            if cell.field.name == "effect":
                places = [(one.start, one.end) for one in cell.citations]
                near["effect"] += _overlap(places, spans)
                by_chance["effect"] += _overlap([(other.start, other.end)], spans)
                continue
            gold = [one[cell.field.name] for one in prompts[name]]
            near[cell.field.name] += _near(" ".join(one.quote for one in cell.citations), gold)
            by_chance[cell.field.name] += _near(other.of(texts[name]), gold)
    print(f"\n{most} articles with prompts, {marked} of them with marked spans\n")
    print("| field | with a value | near | a random sentence |\n| --- | --- | --- | --- |")
    for field in fields:
        count, name = filled[field.name], field.name
        of = marked if name == "effect" else most
        print(
            f"| {name} | {count / of:.0%} | {near[name] / count:.0%} | {by_chance[name] / count:.0%} |"
        )


async def _complete(call: Call) -> Completion:
    reply = TableReply.model_validate(tabulated(call, _unasked))
    return Completion(text="", usage=None, finish=Finish.STOP, served_model=_OFFLINE, parsed=reply)


def _unasked(question: str, excerpts: Sequence[Excerpt]) -> Scores:
    raise AssertionError(f"the preset has cues for every field: {question}, {len(excerpts)}")


def _near(quote: str, gold: Sequence[str]) -> bool:
    there = stems(quote)
    wanted = [found for one in gold if (found := stems(one))]
    return any(len(one & there) >= _SHARE * len(one) for one in wanted)


def _overlap(places: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]) -> bool:
    return any(a < d and c < b for a, b in places for c, d in spans)


if __name__ == "__main__":
    main()
