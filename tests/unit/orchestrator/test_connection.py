"""What is told of the connection to Redis, and what is taken for a store that may serve again."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from redis.exceptions import OutOfMemoryError, ReadOnlyError, RedisError, ResponseError

from posology.errors import ConfigurationError, StoreUnavailable
from posology.store.connection import connect, shown, translated

PLACES = ("redis://{}@h:6379/0", "rediss://me{}@h", "unix://{}@/run/r.sock", "redis+socket://{}@/r")
ANY = st.text(st.sampled_from("a1:/#?@[]%& \t\\é℀") | st.characters(codec="utf-8"), max_size=6)


@given(
    place=st.sampled_from(PLACES), before=ANY, piece=st.sampled_from(["s3cret", "918"]), after=ANY
)
@example(place=PLACES[0], before="", piece="s3cret", after="/xyz")
@example(place=PLACES[0], before="", piece="918", after="?x")
@example(place=PLACES[1], before="", piece="918", after="/x")
def test_no_piece_of_a_password_is_told(place: str, before: str, piece: str, after: str) -> None:
    url = place.format(f":{before}{piece}{after}")
    said = [shown(url)]
    try:
        connect(url)
    except ConfigurationError as error:
        said.append(str(error))
    assert not any(piece in text for text in said)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis://:s3cret@h:6379/0", "redis://h:6379/0"),
        ("rediss://me:s%2Fx%40@h?health=1", "rediss://h"),
        ("unix:///run/r.sock", "unix:///run/r.sock"),
        ("redis+socket:///run/r.sock?virtual_host=1", "redis+socket:///run/r.sock"),
    ],
)
def test_the_rest_of_an_address_is_told(url: str, place: str) -> None:
    assert shown(url) == place


def test_a_wrong_address_is_told_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match=r"write / # \? @ in the password as %2F %23"):
        connect("redis://:s3cret/xyz@h:6379/0")


@pytest.mark.parametrize(
    "error",
    [
        # as the client gives them: without the code where it has a class for it
        OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
        ReadOnlyError("You can't write against a read only replica."),
        ResponseError("MISCONF Redis is configured to save RDB snapshots"),
        ResponseError("NOREPLICAS Not enough good replicas to write."),
        ResponseError("BUSY Redis is busy running a script. You can only call SCRIPT KILL"),
        *(
            ResponseError(f"Error running script (call to f_0): @user_script:9: 9: -{said}")
            for said in ("OOM command not", "READONLY You", "NOREPLICAS Not", "MISCONF Redis")
        ),
    ],
)
def test_a_store_that_cannot_serve_now_is_no_defect(error: RedisError) -> None:
    with pytest.raises(StoreUnavailable, match="redis://h"), translated("redis://h"):
        raise error


@pytest.mark.parametrize(
    "error",
    [
        ResponseError("WRONGTYPE Operation against a key"),
        ResponseError("BUSYGROUP Consumer Group name already exists"),
        ResponseError("Error running script: a job cannot go from queued to reducing"),
    ],
)
def test_a_defect_stays_one(error: RedisError) -> None:
    with pytest.raises(ResponseError), translated("redis://h"):
        raise error
