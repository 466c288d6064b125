"""Errors of obtaining a token."""

from __future__ import annotations

from ragmcp.errors import RagMcpError


class AuthorizationFailed(RagMcpError):
    """No token: a server or the user refused, or a server cannot be trusted."""

    url: str
    reason: str
    hint: str = ""
    sentence = "Access to {url} was not granted: {reason}."


class LoginRequired(RagMcpError):
    """A user must log in, which is not possible here."""

    url: str
    hint: str = ""
    sentence = "The server at {url} wants you to log in."
