"""paper-qa's side of :mod:`evals.live`: ``python peer.py MODEL URL`` in an environment of its own.

It reads questions from standard input and writes an answer for each, one JSON object a line. It reads the passages that it is
given, all of them, and imports nothing of Posology.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from lmi import EmbeddingModel
from paperqa import Docs, Settings
from paperqa.types import Doc, Text

#: fields of a question and of its answer
Row = dict[str, Any]


class Alike(EmbeddingModel):  # type: ignore[misc]  # it ships types that are not installed here
    """Vectors that are all the same, since every passage is read."""

    name: str = "alike"
    ndim: int = 1

    async def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        await asyncio.sleep(0)
        return [[1.0] for _ in texts]


def _settings(model: str, url: str, passages: int) -> Settings:
    served = {
        "model": f"openai/{model}", "api_base": url, "api_key": "none", "temperature": 0, "timeout": 1800, "max_tokens": 400,
    }  # fmt: skip
    models = {"name": model, "model_list": [{"model_name": model, "litellm_params": served}]}
    return Settings(
        llm=model, llm_config=models, summary_llm=model, summary_llm_config=models,
        answer={"evidence_k": passages, "answer_max_sources": passages, "max_concurrent_requests": 1},
    )  # fmt: skip


async def answer(row: Row, model: str, url: str) -> Row:
    """Answer a question from its passages; no text: it says that it cannot."""
    settings, alike = _settings(model, url, len(row["texts"])), Alike()
    docs = Docs()
    for number, text in enumerate(row["texts"], 1):
        doc = Doc(docname=f"document{number}", dockey=str(number), citation=f"Document {number}")
        chunk = Text(text=text, name=f"document{number} chunk 1", doc=doc)
        await docs.aadd_texts([chunk], doc, settings=settings, embedding_model=alike)
    session = await docs.aquery(row["question"], settings=settings, embedding_model=alike)
    counts = list(session.token_counts.values())
    return {
        "text": session.raw_answer,
        "tokens_in": sum(one[0] for one in counts),
        "tokens_out": sum(one[1] for one in counts),
    }


def main() -> None:
    """Answer one question after the other."""
    model, url = sys.argv[1:]
    # its libraries print, too
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            found = asyncio.run(answer(json.loads(line), model, url))
        except Exception as error:  # noqa: BLE001 - any failure of a peer counts
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(found), file=out, flush=True)


if __name__ == "__main__":
    main()
