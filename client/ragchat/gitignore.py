"""What .gitignore files leave out of a folder, as git would have it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


@dataclass(frozen=True)
class Gitignore:
    """The .gitignore files that hold for a folder, outermost first; a deeper one has the last word."""

    specs: tuple[tuple[Path, GitIgnoreSpec], ...] = ()

    @classmethod
    def above(cls, root: Path) -> Gitignore:
        """Those between the repository's top and `root`; none if they ignore `root` itself: it was named."""
        parents = list(root.parents)
        top = next((index for index, folder in enumerate(parents) if (folder / ".git").exists()), None)
        if top is None or (root / ".git").exists():
            return cls()
        ignored = cls()
        for folder in reversed(parents[: top + 1]):
            ignored = ignored.inside(folder)
        return cls() if ignored.matches(root, folder=True) else ignored

    def inside(self, folder: Path) -> Gitignore:
        try:
            lines = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return self
        from pathspec import GitIgnoreSpec

        return Gitignore((*self.specs, (folder, GitIgnoreSpec.from_lines(lines))))

    def matches(self, path: Path, folder: bool) -> bool:
        for base, spec in reversed(self.specs):
            if not path.is_relative_to(base):
                continue
            relative = path.relative_to(base).as_posix() + ("/" if folder else "")
            verdict = spec.check_file(relative).include
            if verdict is not None:
                return verdict
        return False
