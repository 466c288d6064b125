"""A seal holds, or it is refused."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmcp.server.state_signing import Seal


@given(st.binary(max_size=200))
def test_what_was_sealed_comes_back(payload: bytes) -> None:
    seal = Seal()
    assert seal.open(seal.close(payload)) == payload


@given(st.data())
def test_not_one_character_may_differ(data: st.DataObject) -> None:
    seal = Seal()
    sealed = seal.close(data.draw(st.binary(max_size=50)))
    place = data.draw(st.integers(0, len(sealed) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda character: character != sealed[place]))
    with pytest.raises(ValueError, match=r".+"):
        seal.open(sealed[:place] + other + sealed[place + 1 :])


@given(st.text(max_size=100))
def test_what_was_never_sealed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Seal().open(text)


def test_another_spelling_of_the_same_bytes_is_refused() -> None:
    seal = Seal()
    sealed = seal.close(b"")  # 32 bytes: the last character before the padding has two bits to spare.
    other = sealed[:-2] + chr(ord(sealed[-2]) + 1) + "="
    assert base64.urlsafe_b64decode(other) == base64.urlsafe_b64decode(sealed)
    for spelling in (other, sealed + "\n", sealed + "=", " " + sealed, sealed + "-TAMPERED"):
        with pytest.raises(ValueError, match=r".+"):
            seal.open(spelling)


def test_every_process_has_a_key_of_its_own() -> None:
    with pytest.raises(ValueError, match="broken"):
        Seal().open(Seal().close(b"payload"))


def test_nothing_can_be_cut_off_or_put_on() -> None:
    seal = Seal()
    raw = base64.urlsafe_b64decode(seal.close(b"payload"))
    for other in (raw[:-1], raw + b"x", raw[:31], b""):
        with pytest.raises(ValueError, match="broken"):
            seal.open(base64.urlsafe_b64encode(other).decode())
