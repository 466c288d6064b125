"""One's own judgement of answers: cases, runs of them, and one turn asked again."""

from __future__ import annotations

from ragchat.arguments.declaring import argument, command, text
from ragchat.arguments.questions import MODEL_CHOICE, SCOPE, TOP_K

COMMANDS = (
    command(
        "eval",
        "ask all saved cases again, and say what became better and worse",
        text("--set", metavar="FILE", help="the questions of this script instead"),
        TOP_K,
        *MODEL_CHOICE,
        target="eval:evaluate",
    ),
    command("case ls", "list the cases", target="eval:ls"),
    command(
        "case rm",
        "remove cases",
        argument("case_ids", nargs="+", metavar="ID", help="the case's id or the beginning of it"),
        target="eval:rm",
    ),
    command(
        "replay",
        "ask a past question again with other settings, and compare the answers",
        argument("turn", nargs="?", metavar="TURN", help="the turn's id (default: the last turn)"),
        text("--model", metavar="M", action="append", dest="models", help="ask M; may be repeated"),
        MODEL_CHOICE[1],
        TOP_K,
        SCOPE,
        check=lambda given: (
            "--model and --offline cannot be combined; --model offline is one more column"
            if given.models and given.offline
            else ""
        ),
    ),
)
