"""How the memory server is started."""

from __future__ import annotations

from pathlib import Path

from ragchat.memory_process import command
from tests.support.turns import settings_in


def test_the_server_gets_the_memory_the_settings_file_and_the_wish_for_more_log(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, memory__path=str(tmp_path / "m.db"))
    words = command(settings, tmp_path / "c.toml", True)
    assert words[words.index("--memory") + 1] == str(tmp_path / "m.db")
    assert words[words.index("--config") + 1] == str(tmp_path / "c.toml")
    assert "-v" in words
    assert "-v" not in command(settings, None, False)
