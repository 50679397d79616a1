"""Signatures, as the standard's own library makes and checks them."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from standardwebhooks import Webhook

from orchestrator.webhooks.signing import headers, new_secret, signature


def test_the_example_of_the_standards_libraries() -> None:
    """Vector of the reference implementations' own tests."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    assert (
        signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body)
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_each_secret_signs_what_the_library_signs() -> None:
    secrets, now = [new_secret(), new_secret()], int(time.time())
    body = '{"type":"job.ended","text":"ünïcode"}'.encode()
    made = headers(secrets, "msg_1", now, body)
    for secret, one in zip(secrets, made["webhook-signature"].split(" "), strict=True):
        library = Webhook(secret)
        library.verify(body, made)
        assert one == library.sign("msg_1", datetime.fromtimestamp(now, UTC), body.decode())
