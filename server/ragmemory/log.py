"""The log as JSON, one object a line, for programs that collect logs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from ragconfig.redaction import redacted
from ragconfig.settings import Settings
from ragmcp.tracing import TRACE_ID


class LogSettings(Struct, frozen=True):
    """The table [log]."""

    form: Literal["text", "json"]


class JsonFormatter(logging.Formatter):
    """`trace_id` is that of the request, if its client has sent one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redacted(record.getMessage()),
            "trace_id": TRACE_ID.get(),
        }
        if record.exc_info:
            line["exception"] = redacted(self.formatException(record.exc_info))
        return json.dumps(line)


def set_form(settings: Settings) -> None:
    """Log in the form that the settings say. Raises SettingsError."""
    if settings.table("log", LogSettings).form == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter())


def json_handler() -> logging.Handler | None:
    """The handler of a log that is JSON; None if it is text."""
    handlers = logging.getLogger().handlers
    return next((one for one in handlers if isinstance(one.formatter, JsonFormatter)), None)


def say(level: int, sentence: str) -> None:
    """Print a sentence for the person who runs the program on stderr, as JSON if the log is."""
    if handler := json_handler():
        handler.handle(logging.LogRecord("ragmemory", level, "", 0, sentence, (), None))
    else:
        sys.stderr.write(f"{sentence}\n")
