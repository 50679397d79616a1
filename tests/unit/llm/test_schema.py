from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel

from posology.llm.schema import response_schema


class Quote(BaseModel):
    passage: str = Field(description="its label", min_length=1)
    words: Annotated[str, Field(max_length=300)]


class Reply(BaseModel):
    verdict: Literal["yes", "no"] | None = None
    quotes: list[Quote] = Field(default_factory=list, max_length=5)
    best: Quote = Field(description="the strongest")
    sure: float = Field(0.5, ge=0, le=1)


class Free(BaseModel):
    scores: dict[str, float]


class Anything(BaseModel):
    value: Any


class Pair(BaseModel):
    value: tuple[int, str]


class Listing(RootModel[list[str]]):
    pass


def objects(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, dict):
        here = [node] if node.get("type") == "object" else []
        return here + [found for value in node.values() for found in objects(value)]
    if isinstance(node, list):
        return [found for value in node for found in objects(value)]
    return []


def keywords(node: Any, *, names: bool = False) -> set[str]:
    """Every keyword of a schema; under ``properties`` and ``$defs`` the keys are names."""
    if isinstance(node, dict):
        own = set() if names else set(node)
        return own.union(
            *(
                keywords(v, names=not names and k in ("properties", "$defs"))
                for k, v in node.items()
            )
        )
    if isinstance(node, list):
        return set().union(*(keywords(value) for value in node))
    return set()


def test_strict_mode_gets_closed_objects_with_every_property_required() -> None:
    made = response_schema(Reply)
    assert made.strict
    found = objects(made.schema)
    assert len(found) == 2
    for node in found:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])


def test_strict_mode_gets_no_keyword_that_it_does_not_know() -> None:
    schema = response_schema(Reply).schema
    assert not keywords(schema) & {"default", "minLength", "maxLength"}
    assert schema["properties"]["best"] == {"$ref": "#/$defs/Quote"}
    assert schema["properties"]["quotes"]["maxItems"] == 5
    assert schema["properties"]["sure"]["maximum"] == 1


@pytest.mark.parametrize("model", [Free, Anything, Pair, Listing])
def test_what_strict_mode_cannot_say_is_sent_as_a_wish(model: type[BaseModel]) -> None:
    made = response_schema(model)
    assert not made.strict
    assert made.schema == model.model_json_schema()


def test_a_name_has_only_letters_that_the_provider_takes() -> None:
    generic = type("Réponse[int]" + "x" * 80, (BaseModel,), {"__annotations__": {"a": int}})
    name = response_schema(generic).name
    assert name.startswith("R_ponse_int_")
    assert len(name) == 64
