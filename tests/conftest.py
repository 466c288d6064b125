"""What all tests have in common: none of them can open the memory of whoever runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragmcp.home import HOME_VARIABLE


@pytest.fixture(scope="session", autouse=True)
def _home_of_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(tmp_path_factory.mktemp("home")))
        patch.delenv("RAGCHAT_MEMORY", raising=False)
        yield
