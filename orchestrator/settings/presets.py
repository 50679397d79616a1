"""Presets: the method of a paper with its published hyperparameters, as fields of a request.

What a paper has beside a question (its embedder, re-ranker, model, trained table) is configured, not asked for:
docs/how-to/replicate.md says what each preset needs. The templates are our own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

#: fields of each preset
PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # section 5.3: MedCPT's order, 16 documents; preflight by equation 1 with n = 3 and 0.2; partitions of half of
        # the documents, as in the authors' run
        "briefcontext": {
            "mode": "dense",
            "k": 16,
            "policy": "preflight:preflight=published",
            "partitions": "answer",
            "partition_size": 8,
        },
        # tables 1 to 4: the table is trained on N = 8 chunks; what compression costs is not weighed
        "leancontext": {
            "mode": "dense",
            "k": 8,
            "policy": "qtable:compressor=leancontext,saving=off",
        },
        # figure 3: 3 entries; section 4.2.2 at the mildest share of section 5.1
        "tcra": {
            "mode": "dense",
            "k": 3,
            "strategy": "compressed",
            "compressor": "tcra_semantic:guard=off",
            "keep": 0.7,
        },
        # section 4.2: top 5, and the threshold of 0.1, which is the compressor's own
        "provence": {"mode": "dense", "k": 5, "strategy": "compressed", "compressor": "provence"},
        # 2 documents, doubled up to 5 times, overlapping: 2 + 4 + 8 + 16 + 32
        "pathway": {
            "mode": "dense",
            "k": 32,
            "policy": "doubling:start=2,factor=2,rounds=5,overlapping=on,escalate=off",
        },
    }
)


def filled(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a request with those of its preset, as far as they are not given.

    A given strategy takes the place of the preset's policy, and a given policy that of its strategy.
    """
    preset = PRESETS.get(str(fields.get("preset")))
    if preset is None:
        return fields
    given = {name for name, value in fields.items() if value is not None}
    left = set(preset) - given
    if "strategy" in given or "policy" in given:
        left -= {"strategy", "policy"}
    if "policy" in given:
        left -= {"keep"}
    return {**fields, **{name: preset[name] for name in left}}
