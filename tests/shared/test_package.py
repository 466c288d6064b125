"""What `import ragmcp` offers."""

from __future__ import annotations

import ragmcp


def test_every_name_of_the_package_can_be_imported_and_is_listed() -> None:
    assert sorted(ragmcp.__all__) == sorted(" ".join(ragmcp._HOMES.values()).split())
    assert set(ragmcp.__all__) <= set(dir(ragmcp))
    for name in ragmcp.__all__:
        assert getattr(ragmcp, name) is not None
