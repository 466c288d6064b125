from __future__ import annotations

import pytest

from ragcommon.files.uris import without_secrets


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "api_key",
        "apikey",
        "X-Amz-Signature",
        "sig",
        "access_token",
        "client_secret",
        "password",
        "pwd",
    ],
)
def test_the_value_of_a_parameter_that_is_named_like_a_secret_is_hidden(name: str) -> None:
    assert without_secrets(f"https://host/v1?a=1&{name}=x#top") == f"https://host/v1?a=1&{name}=***#top"


@pytest.mark.parametrize("name", ["keywords", "author", "design", "signup", "passage", "compass", "monkey"])
def test_a_word_for_a_secret_within_the_name_of_a_parameter_hides_nothing(name: str) -> None:
    assert without_secrets(f"https://host/search?{name}=x") == f"https://host/search?{name}=x"


@pytest.mark.parametrize("parameter", ["sslkey=/etc/key.pem", "passfile=/pass", "require_auth=scram-sha-256"])
def test_the_paths_and_methods_of_a_database_are_shown(parameter: str) -> None:
    assert without_secrets(f"postgresql://db/notes?{parameter}") == f"postgresql://db/notes?{parameter}"
