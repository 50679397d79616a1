"""The whole way of abstracts into an index, by backend: reading, splitting, encoding, writing, and the search indices."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evals.encoding_turns import Clock, Cost, Turns
from posology.index.build.ingest import ingest
from posology.index.store import Index
from strategies.compression.late.codec import LateCodec
from strategies.compression.self_information import make_annotator

if TYPE_CHECKING:
    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder

#: abstracts that become an index of their own: as many as :func:`posology.index.build.ingest.ingest` commits together
BLOCK = 512


def ingest_by(
    embedders: Mapping[str, SentenceTransformerEmbedder],
    rows: Sequence[Mapping[str, Any]],
    folder: Path,
    *,
    codes: bool,
    whole: int,
) -> None:
    """Print how fast abstracts become rows of an index, with the vectors of their sentences.

    Each block is ingested by every backend in turns, into an index of its own, as ``posology ingest`` does it:
    phrases' self-information is written, too, and the search indices are made. One block is the smallest ingest
    that there is; in a long one, the indices are made once.

    Args:
        embedders: by backend.
        rows: of the pool.
        folder: where what blocks took is kept.
        codes: whether tokens' codes are written, too.
        whole: abstracts of all.
    """
    blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    stage = f"ingest-{'codes' if codes else 'plain'}"
    turns = Turns(stage, list(embedders), list(map(len, blocks)), folder)
    codec = LateCodec.packaged() if codes else None

    def work(name: str, block: int) -> Cost:
        embedder, annotator = embedders[name], make_annotator(None)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            path = Path(place) / "abstracts.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in blocks[block]), "utf-8")
            index = Index.open_or_create(
                str(Path(place) / "index"),
                embedder.name,
                embedder.dim,
                annotator=annotator.name,
                codec=codec,
            )
            clock = Clock()
            report = ingest([path], index, embedder, annotator=annotator, codec=codec)
            cost = clock.cost(len(blocks[block]))
        if report.written != len(blocks[block]):
            raise SystemExit(f"{name} wrote {report.written} of {len(blocks[block])} abstracts")
        return cost

    turns.run(work)
    print(
        f"\ningest of {len(rows)} abstracts with their sentences, {'with' if codes else 'without'} token codes"
    )
    turns.report(whole)
