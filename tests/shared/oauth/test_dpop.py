"""Proofs that we hold the key of a token."""

from __future__ import annotations

import base64
import hashlib

import jwt

from ragmcp.oauth.dpop import ALGORITHM, Prover


def test_a_proof_can_be_verified_and_names_the_request_the_token_and_the_nonce() -> None:
    prover = Prover()
    prover.note_nonce("https://a.org/token", "n")
    proof = prover.proof("POST", "https://a.org/mcp?x=1#y", "token")
    header = jwt.get_unverified_header(proof)
    assert (header["typ"], "d" in header["jwk"]) == ("dpop+jwt", False)
    claims = jwt.decode(proof, jwt.PyJWK(header["jwk"]), [ALGORITHM])
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"token").digest()).rstrip(b"=").decode()
    assert (claims["htm"], claims["htu"]) == ("POST", "https://a.org/mcp")
    assert (claims["ath"], claims["nonce"]) == (digest, "n")


def test_no_two_proofs_are_the_same_and_a_nonce_stays_with_its_server() -> None:
    prover = Prover()
    prover.note_nonce("https://a.org", "n")
    one, two = (prover.proof("POST", "https://b.org/mcp") for _ in range(2))
    assert one != two
    assert "nonce" not in jwt.decode(one, options={"verify_signature": False})


def test_the_key_can_be_kept() -> None:
    first = Prover()
    again = Prover(first.pem)
    assert (
        jwt.get_unverified_header(again.proof("GET", "https://a.org"))["jwk"]
        == (jwt.get_unverified_header(first.proof("GET", "https://a.org"))["jwk"])
    )
