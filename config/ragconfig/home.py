"""The folders of the program.

The settings and the first prompt need them, so this imports neither msgspec nor TOML.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

# The variable for one folder that holds all four; not a key of the settings.
HOME_VARIABLE = "RAGCHAT_HOME"


class UnknownHome(OSError):
    """A path begins with `~name`, and there is no user of that name."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ENOENT, "No such home folder", path)


def user_path(path: str | Path) -> Path:
    """`path`, absolute, with `~` and `~name` replaced by home folders. Raises UnknownHome."""
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError:
        raise UnknownHome(str(path)) from None


class Home(NamedTuple):
    """The four folders: under `RAGCHAT_HOME` (`root`) if set, else the platform's usual places."""

    config: Path
    data: Path
    state: Path
    cache: Path
    root: Path | None = None

    @classmethod
    def find(cls, environ: Mapping[str, str] = os.environ) -> Home:
        """Raises UnknownHome."""
        if root := environ.get(HOME_VARIABLE):
            home = user_path(root)
            return cls(home / "config", home / "data", home / "state", home / "cache", home)
        import platformdirs

        dirs = platformdirs.PlatformDirs("ragchat", appauthor=False)
        return cls(dirs.user_config_path, dirs.user_data_path, dirs.user_state_path, dirs.user_cache_path)
