"""The peer of ``evals.throughput --questions``: LangChain's map-reduce over FAISS, as its documentation writes it.

``python throughput_peer.py FOLDER ABSTRACTS MODEL QUESTIONS URL`` in an environment of its own. It imports nothing of
Posology. The index in FOLDER is made if it is not there; ``abatch`` answers all questions at once, 64 at a time.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

PASSAGES, AT_ONCE = 8, 64
#: questions before the clock starts
WARM = 16


def _index(folder: Path, abstracts: Path, model: str) -> Any:
    from langchain_community.vectorstores import FAISS
    from langchain_core.documents import Document
    from langchain_huggingface import HuggingFaceEmbeddings

    embeddings = HuggingFaceEmbeddings(
        model_name=model, encode_kwargs={"batch_size": 32, "normalize_embeddings": True}
    )
    if folder.exists():
        return FAISS.load_local(str(folder), embeddings, allow_dangerous_deserialization=True)
    rows = [json.loads(line) for line in abstracts.read_text(encoding="utf-8").splitlines()]
    texts = [f"{row.get('title') or ''}. {row['text']}" for row in rows]
    made = FAISS.from_documents([Document(page_content=text) for text in texts], embeddings)
    made.save_local(str(folder))
    return made


def _chain(index: Any, url: str) -> Any:
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnableLambda
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="gpt-4o-mini", base_url=url, api_key="stub", temperature=0)
    extract = (
        ChatPromptTemplate.from_template(
            "Use the following portion of a long document to see if any of the text is relevant to answer the question. "
            "Return any relevant text verbatim.\n{context}\nQuestion: {question}\nRelevant text, if any:"
        )
        | model
        | StrOutputParser()
    )
    reduce = (
        ChatPromptTemplate.from_template(
            "Given the following extracted parts of a long document and a question, create a final answer. If you don't know "
            "the answer, just say that you don't know. Don't try to make up an answer.\n\nQUESTION: {question}\n=========\n"
            "{summaries}\n=========\nFINAL ANSWER:"
        )
        | model
        | StrOutputParser()
    )

    async def answer(question: str) -> str:
        found = await index.asimilarity_search(question, k=PASSAGES)
        parts = await extract.abatch(
            [{"context": one.page_content, "question": question} for one in found]
        )
        done: str = await reduce.ainvoke({"summaries": "\n\n".join(parts), "question": question})
        return done

    return RunnableLambda(answer)


def main() -> None:
    """Answer and print the seconds, wall and processor."""
    folder, abstracts, model, file, url = sys.argv[1:]
    questions = json.loads(Path(file).read_text(encoding="utf-8"))
    chain = _chain(_index(Path(folder), Path(abstracts), model), url)

    async def run() -> tuple[float, float]:
        await chain.abatch(questions[-WARM:], config={"max_concurrency": AT_ONCE})
        spent, began = time.process_time(), time.perf_counter()
        await chain.abatch(questions, config={"max_concurrency": AT_ONCE})
        return time.perf_counter() - began, time.process_time() - spent

    seconds, spent = asyncio.run(run())
    print(json.dumps({"seconds": seconds, "processor": spent}))


if __name__ == "__main__":
    main()
