"""The peers of :mod:`evals.peers`: each answers questions as its own documentation writes it.

``python programs.py NAME FOLDER ABSTRACTS MODEL QUESTIONS ALONE URL`` in an environment of their own; it imports
nothing of Posology. The first run of a peer makes its index in FOLDER. It answers the last 16 questions to warm up, the
first ALONE one after the other, then all, 64 at a time, and prints one line of JSON. All embed with the same MODEL.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import pickle
import queue
import resource
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

PASSAGES, AT_ONCE = 8, 64
#: questions before the clock starts
WARM = 16
#: documents of each question to the model, as often as it refuses
DOUBLING = (2, 4, 8)
#: seconds after which an answer of Pathway's engine is not awaited any more: it gives none where a call failed
LOST = 120
NAME = "gpt-4o-mini"
REFUSAL = "Not found in the sources."
#: answers a question; an empty answer is none
Ask = Callable[[str], Awaitable[str]]


def _texts(abstracts: Path) -> list[str]:
    rows = [json.loads(line) for line in abstracts.read_text(encoding="utf-8").splitlines()]
    return [f"{row.get('title') or ''}. {row['text']}" for row in rows]


def langchain(folder: Path, abstracts: Path, model: str, url: str) -> Ask:
    """LangChain's map-reduce over FAISS: eight extracts and a reduce."""
    from langchain_community.vectorstores import FAISS
    from langchain_core.documents import Document
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_huggingface import HuggingFaceEmbeddings
    from langchain_openai import ChatOpenAI

    embeddings = HuggingFaceEmbeddings(
        model_name=model, encode_kwargs={"batch_size": 32, "normalize_embeddings": True}
    )
    if not folder.exists():
        documents = [Document(page_content=text) for text in _texts(abstracts)]
        FAISS.from_documents(documents, embeddings).save_local(str(folder))
    index = FAISS.load_local(str(folder), embeddings, allow_dangerous_deserialization=True)
    chat = ChatOpenAI(model=NAME, base_url=url, api_key="stub", temperature=0)
    extract = (
        ChatPromptTemplate.from_template(
            "Use the following portion of a long document to see if any of the text is relevant to answer the question. "
            "Return any relevant text verbatim.\n{context}\nQuestion: {question}\nRelevant text, if any:"
        )
        | chat
        | StrOutputParser()
    )
    reduce = (
        ChatPromptTemplate.from_template(
            "Given the following extracted parts of a long document and a question, create a final answer. If you don't know "
            "the answer, just say that you don't know. Don't try to make up an answer.\n\nQUESTION: {question}\n=========\n"
            "{summaries}\n=========\nFINAL ANSWER:"
        )
        | chat
        | StrOutputParser()
    )

    async def ask(question: str) -> str:
        found = await index.asimilarity_search(question, k=PASSAGES)
        parts = await extract.abatch(
            [{"context": one.page_content, "question": question} for one in found]
        )
        done: str = await reduce.ainvoke({"summaries": "\n\n".join(parts), "question": question})
        return done

    return ask


def paperqa(folder: Path, abstracts: Path, model: str, url: str) -> Ask:
    """paper-qa's ``Docs.aquery``: eight summaries with scores, gathered at once, and an answer."""
    from paperqa import Docs, Settings
    from paperqa.types import Doc, Text

    served = {"model": f"openai/{NAME}", "api_base": url, "api_key": "stub", "temperature": 0}
    models = {"name": NAME, "model_list": [{"model_name": NAME, "litellm_params": served}]}
    settings = Settings(
        llm=NAME, llm_config=models, summary_llm=NAME, summary_llm_config=models,
        embedding=f"st-{model}",
        # eight documents as for the others; four calls at once is its default
        answer={"evidence_k": PASSAGES, "answer_max_sources": PASSAGES, "max_concurrent_requests": PASSAGES},
    )  # fmt: skip
    embedding = settings.get_embedding_model()

    async def make() -> Docs:
        docs = Docs()
        for number, text in enumerate(_texts(abstracts), 1):
            doc = Doc(docname=f"document{number}", dockey=str(number), citation=text.split(".")[0])
            chunk = Text(text=text, name=f"document{number} chunk 1", doc=doc)
            await docs.aadd_texts([chunk], doc, settings=settings, embedding_model=embedding)
        return docs

    if not folder.exists():
        made = asyncio.run(make())
        folder.mkdir()
        (folder / "docs.pickle").write_bytes(pickle.dumps(made))
    docs: Docs = pickle.loads((folder / "docs.pickle").read_bytes())  # noqa: S301 - written above

    async def ask(question: str) -> str:
        session = await docs.aquery(question, settings=settings, embedding_model=embedding)
        # its own words where every summary failed
        answered: str = "" if session.answer.startswith("I cannot answer") else session.answer
        return answered

    return ask


def plain(folder: Path, abstracts: Path, model: str, url: str) -> Ask:
    """A RAG of forty lines: cosine over a matrix, all eight documents in one prompt."""
    complete, search = _parts(folder, abstracts, model, url)

    async def ask(question: str) -> str:
        found = await search(question)
        shown = "\n".join(f"[{number}] {text}" for number, text in enumerate(found, 1))
        return await complete(
            "Answer the question from these documents only, and cite their numbers. If they do not answer it, say so.\n\n"
            f"{shown}\n\nQuestion: {question}\nAnswer:"
        )

    return ask


def doubling(folder: Path, abstracts: Path, model: str, url: str) -> Ask:
    """Pathway's adaptive RAG re-enacted, not its code: twice the documents after each refusal."""
    complete, search = _parts(folder, abstracts, model, url)

    async def ask(question: str) -> str:
        found = await search(question)
        for many in DOUBLING:
            shown = "\n".join(f"Source {n}: {text}" for n, text in enumerate(found[:many], 1))
            answer = await complete(
                f'Answer the query by the sources below. If they hold no answer, write "{REFUSAL}" without an explanation.\n'
                "Cite each source that you use by its number; an answer has at least one citation. As in:\n"
                "Source 1: Salt raises blood pressure in most adults.\nSource 2: Bread is the main source of salt.\n"
                "Query: Which food should adults with high blood pressure look at first?\n"
                "Answer: Bread, since it brings most of the salt [2] that raises blood pressure [1].\n"
                f"Or:\nSource 1: Statins lower cholesterol.\nQuery: Who discovered insulin?\nAnswer: {REFUSAL}\n"
                f"------\n{shown}\n------\nQuery: {question}\nAnswer:"
            )
            if REFUSAL not in answer:
                return answer
        return REFUSAL

    return ask


def pathway(folder: Path, abstracts: Path, model: str, url: str) -> Ask:
    """Pathway's own adaptive RAG: questions and their documents stream into its engine, answers out of it."""
    import pathway as pw
    from pathway.xpacks.llm.llms import OpenAIChat
    from pathway.xpacks.llm.question_answering import answer_with_geometric_rag_strategy

    _, search = _parts(folder, abstracts, model, url)
    asked: queue.SimpleQueue[tuple[str, list[str]]] = queue.SimpleQueue()
    waiting: dict[str, list[asyncio.Future[str]]] = defaultdict(list)

    class Questions(pw.io.python.ConnectorSubject):  # type: ignore[misc]
        def run(self) -> None:
            while True:
                query, documents = asked.get()
                self.next(query=query, documents=documents)
                self.commit()

    def answered(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:  # noqa: ARG001, FBT001 (its signature)
        # in the engine's thread
        if is_addition:
            future = waiting[row["query"]].pop()
            answer = row["answer"].value["response"]
            future.get_loop().call_soon_threadsafe(future.set_result, answer)

    schema = pw.schema_from_types(query=str, documents=list[str])
    # it commits a row at once
    questions = pw.io.python.read(Questions(), schema=schema, autocommit_duration_ms=10)
    chat = OpenAIChat(model=NAME, base_url=url, api_key="stub", temperature=0)
    answers = questions.select(
        query=questions.query,
        answer=answer_with_geometric_rag_strategy(
            questions.query,
            questions.documents,
            chat,
            n_starting_documents=DOUBLING[0],
            factor=2,
            max_iterations=len(DOUBLING),
        ),
    )
    pw.io.subscribe(answers, on_change=answered)
    # a question that fails has no answer, and the others go on
    run = partial(pw.run, monitoring_level=pw.MonitoringLevel.NONE, terminate_on_error=False)
    threading.Thread(target=run, daemon=True).start()

    async def ask(question: str) -> str:
        found = await search(question)
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        waiting[question].append(future)
        asked.put((question, list(found)))
        return await asyncio.wait_for(future, LOST)

    return ask


def _parts(
    folder: Path, abstracts: Path, model: str, url: str
) -> tuple[Callable[[str], Awaitable[str]], Callable[[str], Awaitable[Sequence[str]]]]:
    """Return the two halves of a plain RAG: one that completes a prompt and one that searches."""
    import numpy as np
    from openai import AsyncOpenAI
    from sentence_transformers import SentenceTransformer

    texts, encoder = _texts(abstracts), SentenceTransformer(model, device="cpu")
    if not folder.exists():
        folder.mkdir()
        np.save(folder / "vectors.npy", encoder.encode(texts, normalize_embeddings=True))
    vectors = np.load(folder / "vectors.npy")
    client = AsyncOpenAI(base_url=url, api_key="stub")

    def nearest(question: str) -> list[str]:
        scores = vectors @ encoder.encode(question, normalize_embeddings=True)
        return [texts[row] for row in np.argsort(-scores)[:PASSAGES]]

    async def search(question: str) -> Sequence[str]:
        return await asyncio.to_thread(nearest, question)

    async def complete(prompt: str) -> str:
        done = await client.chat.completions.create(
            model=NAME, temperature=0, messages=[{"role": "user", "content": prompt}]
        )
        return done.choices[0].message.content or ""

    return complete, search


#: each peer, and the packages that it needs by the names that they are imported by
PROGRAMS: Mapping[str, tuple[Callable[[Path, Path, str, str], Ask], Sequence[str]]] = {
    "langchain": (
        langchain,
        ("langchain_community", "langchain_huggingface", "langchain_openai", "faiss"),
    ),
    "paper-qa": (paperqa, ("paperqa", "sentence_transformers")),
    "plain": (plain, ("openai", "sentence_transformers")),
    "doubling": (doubling, ("openai", "sentence_transformers")),
    "pathway": (pathway, ("pathway", "openai", "sentence_transformers")),
}


async def _measure(ask: Ask, questions: Sequence[str], alone: int) -> dict[str, Any]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(question: str) -> bool:
        async with places:
            try:
                return bool(await ask(question))
            except Exception as error:  # noqa: BLE001 - any failure of a peer counts
                print(f"{type(error).__name__}: {error}"[:300], file=sys.stderr)
                return False

    await asyncio.gather(*map(one, questions[-WARM:]))
    first = time.time()
    for question in questions[:alone]:
        await ask(question)
    spent, began = time.process_time(), time.time()
    answered = await asyncio.gather(*map(one, questions))
    return ({"alone": began - first} if alone else {}) | {
        "first": first,
        "began": began,
        "seconds": time.time() - began,
        "processor": time.process_time() - spent,
        "failed": answered.count(False),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main() -> None:
    """Answer and print the figures, or the packages that are missing."""
    name, folder, abstracts, model, file, alone, url = sys.argv[1:]
    program, needed = PROGRAMS[name]
    missing = [one for one in needed if importlib.util.find_spec(one) is None]
    if missing:
        print(json.dumps({"absent": missing}))
        return
    questions = json.loads(Path(file).read_text(encoding="utf-8"))
    ask = program(Path(folder), Path(abstracts), model, url)
    print(json.dumps(asyncio.run(_measure(ask, questions, int(alone)))))


if __name__ == "__main__":
    main()
