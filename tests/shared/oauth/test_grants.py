"""The answer to a login: from whom it is, and to which login it belongs."""

from __future__ import annotations

import pytest

from ragmcp.oauth.discovery import ServerMetadata
from ragmcp.oauth.errors import AuthorizationFailed
from ragmcp.oauth.grants import code_of

HONEST = "https://honest.org"


def server(*, says_from_whom: bool) -> ServerMetadata:
    return ServerMetadata(
        HONEST, f"{HONEST}/token", authorization_response_iss_parameter_supported=says_from_whom
    )


@pytest.mark.parametrize(
    ("query", "says_from_whom"),
    [
        ("code=c&state=s&iss=https://honest.org", True),
        ("code=c&state=s&iss=https://honest.org", False),
        ("code=c&state=s", False),
    ],
)
def test_a_right_answer_has_its_code(query: str, says_from_whom: bool) -> None:
    assert code_of(f"http://127.0.0.1/callback?{query}", server(says_from_whom=says_from_whom), "s") == "c"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("code=c&state=s", "does not name its issuer"),
        ("code=c&state=s&iss=https://honest.org/", "from another server"),
        ("code=c&state=s&iss=https://Honest.org", "from another server"),
        (
            "error=denied&error_description=Click+here&state=s&iss=https://evil.org",
            "from another server",
        ),
        ("code=c&state=t&iss=https://honest.org", "belongs to another login"),
        ("code=c&iss=https://honest.org", "belongs to another login"),
        ("state=s&iss=https://honest.org", "has no code"),
        ("error=access_denied&state=s&iss=https://honest.org", "access_denied"),
    ],
)
def test_any_other_answer_is_refused(query: str, reason: str) -> None:
    with pytest.raises(AuthorizationFailed, match=reason) as caught:
        code_of(f"http://127.0.0.1/callback?{query}", server(says_from_whom=True), "s")
    assert "Click" not in str(caught.value)
