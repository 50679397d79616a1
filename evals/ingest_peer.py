"""The peer of ``evals.ingest``: LangChain over sentence-transformers and FAISS, as their documentation writes it.

``python ingest_peer.py FILE FOLDER MODEL`` in an environment of its own. It imports nothing of Posology.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Index the records of a JSONL file: title and text as one document each, no splitting."""
    from langchain_community.vectorstores import FAISS
    from langchain_core.documents import Document
    from langchain_huggingface import HuggingFaceEmbeddings

    file, folder, model = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    documents = [
        Document(
            page_content=f"{row.get('title') or ''}. {row['text']}", metadata={"id": row["id"]}
        )
        for row in rows
    ]
    embeddings = HuggingFaceEmbeddings(
        model_name=model, encode_kwargs={"batch_size": 32, "normalize_embeddings": True}
    )
    FAISS.from_documents(documents, embeddings).save_local(str(folder))


if __name__ == "__main__":
    main()
