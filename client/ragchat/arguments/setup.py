"""The model and the embedder: what there is, and which is used."""

from __future__ import annotations

from ragchat.arguments.declaring import Command, argument, flag, option, text_value

YES = flag("--yes", help="download and choose without asking")

COMMANDS = (
    Command(
        "model setup",
        "model:setup",
        "find models on this machine, try them, and write the one to use into the settings",
        (
            option("--use", metavar="NAME", help="this model, auto, offline, or back for what was before"),
            YES,
        ),
    ),
    Command("embedder ls", "embedder:ls", "list what can embed: size, languages, licence"),
    Command(
        "embedder use",
        "embedder:use",
        "embed memory with another embedder, compare both by your own cases, and change to it",
        (
            argument(
                "name",
                metavar="NAME",
                type=text_value,
                help="its name in `embedder ls`, ollama:NAME to pull one, a folder with a model, or back",
            ),
            flag("--anyway", help="change to it without asking your cases"),
            YES,
        ),
    ),
)
