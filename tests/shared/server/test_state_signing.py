"""A signed token is verified, or it is refused."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmcp.server.state_signing import StateSigner


@given(st.binary(max_size=200))
def test_a_signed_payload_comes_back(payload: bytes) -> None:
    signer = StateSigner()
    assert signer.verify(signer.sign(payload)) == payload


@given(st.data())
def test_not_one_character_may_differ(data: st.DataObject) -> None:
    signer = StateSigner()
    token = signer.sign(data.draw(st.binary(max_size=50)))
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda character: character != token[place]))
    with pytest.raises(ValueError, match=r".+"):
        signer.verify(token[:place] + other + token[place + 1 :])


@given(st.text(max_size=100))
def test_a_text_that_was_never_signed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        StateSigner().verify(text)


def test_another_spelling_of_the_same_bytes_is_refused() -> None:
    signer = StateSigner()
    token = signer.sign(b"")  # 32 bytes: the last character before the padding has two bits to spare.
    other = token[:-2] + chr(ord(token[-2]) + 1) + "="
    assert base64.urlsafe_b64decode(other) == base64.urlsafe_b64decode(token)
    for spelling in (other, token + "\n", token + "=", " " + token, token + "-TAMPERED"):
        with pytest.raises(ValueError, match=r".+"):
            signer.verify(spelling)


def test_every_process_has_a_key_of_its_own() -> None:
    with pytest.raises(ValueError, match="signature is wrong"):
        StateSigner().verify(StateSigner().sign(b"payload"))


def test_nothing_can_be_cut_off_or_put_on() -> None:
    signer = StateSigner()
    raw = base64.urlsafe_b64decode(signer.sign(b"payload"))
    for other in (raw[:-1], raw + b"x", raw[:31], b""):
        with pytest.raises(ValueError, match="signature is wrong"):
            signer.verify(base64.urlsafe_b64encode(other).decode())
