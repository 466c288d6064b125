"""`ragchat config`: show the effective settings and their files, and write a settings file."""

from __future__ import annotations

from ragchat.commands.invocation import Invocation
from ragchat.errors import FileAlreadyExists
from ragchat.setup.shown import effective, keys_set, places, shown
from ragcommon.files.writing import replace_file
from ragconfig.home import Home
from ragconfig.settings import PACKAGED, USER_FILE, packaged_text, range_of

EXISTING_FILE_HINT = "It is left as it is: edit it, or move it away first to get all defaults again."
PREAMBLE = """\
# Settings of ragchat. Every key is commented out and shows its default;
# remove the # to change it. `ragchat config show` prints the effective settings and their origins.

"""


def show(run: Invocation) -> None:
    """Print every key with its value and origin. Of a secret, only whether it is set is printed."""
    rows, keys = effective(run.settings), keys_set()
    cells = [(row["key"], shown(row["value"]), row["origin"]) for row in rows]
    run.console.listing({"settings": rows, "keys": keys}, ("setting", "value", "from"), cells)
    if not run.console.json:
        for variable, is_set in keys.items():
            run.console.print(f"\n{variable} is {'set' if is_set else 'not set'}.")


def path(run: Invocation) -> None:
    """Print where everything is, even if it does not exist yet."""
    found = places(run.settings)
    run.console.listing(
        {name: {"path": str(place), "exists": place.exists()} for name, place in found.items()},
        ("what", "path", ""),
        [(name, place, "" if place.exists() else "(does not exist)") for name, place in found.items()],
    )


def init(run: Invocation) -> None:
    """Write the packaged defaults, commented out. An existing file is not overwritten."""
    target = run.config_file or Home.find().config / USER_FILE
    if target.exists():
        raise FileAlreadyExists(str(target), EXISTING_FILE_HINT)
    # As a whole: on a full disk, half a file would be left, and not be overwritten.
    replace_file(target, template().encode())
    run.console.result({"path": str(target)}, f"Wrote {target}.")


def template() -> str:
    """The packaged settings files as one, with keys commented out, and the ranges of numbers."""
    # The first paragraph of each file is about the packaged file.
    texts = (packaged_text(name).partition("\n\n")[2] for name in PACKAGED)
    lines = [line for text in texts for line in [*text.splitlines(), ""]]
    table, written = "", []
    for line in lines:
        if line.startswith("["):
            table = line.strip("[]")
        if line and line[0] not in "#[":
            allowed = range_of(table, line.partition(" =")[0])
            line = f"#{line}  # {allowed}" if allowed else f"#{line}"
        written.append(line)
    return PREAMBLE + "\n".join(written)
