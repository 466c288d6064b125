"""E-mail: single messages (.eml) and mailboxes (.mbox), whose places are the messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import EmailMessage, Message
from email.parser import BytesParser
from email.policy import EmailPolicy
from pathlib import Path

from ragconfig.files.decoding import NotText
from ragmemory.files.formats.html import markdown
from ragmemory.files.formats.read import Damaged, Read, TextBuilder, one_line

SHOWN = ("From", "To", "Cc", "Date", "Subject")
# The line that begins a message of a mailbox, after an empty line.
FROM_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\r\n\r\n))From [^\r\n]*\r?\n")
QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
MOST_MESSAGES = 100_000
# Characters of a header that are read. Python's parser takes time with the square of their number.
LONGEST_HEADER = 10_000


class ShortHeaders(EmailPolicy):
    """The default policy, with headers cut off at LONGEST_HEADER."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:LONGEST_HEADER]


def read(path: Path, data: bytes) -> Read:
    """The messages of a file. Raises NotText."""
    builder = TextBuilder()
    if path.suffix.lower() == ".eml":
        message = _parsed(data)
        if not any(message.get(name) for name in SHOWN):
            raise Damaged("e-mail")
        subject = _header(message, "Subject")
        builder.add(_text(message))
        return builder.read(subject or path.name)
    number = 0
    for number, raw in enumerate(_messages(data), 1):
        if number > MOST_MESSAGES:
            raise NotText(f"holds more than {MOST_MESSAGES:,} messages")
        message = _parsed(raw)
        if subject := _header(message, "Subject"):
            builder.add(f"# {subject}", f"message {number}")
        builder.add(_text(message), "" if subject else f"message {number}")
    if not number:
        raise Damaged("mailbox")
    return builder.read(path.name)


def _messages(data: bytes) -> Iterator[bytes]:
    """The messages of a mailbox, without the lines between them."""
    starts = [match.span() for match in FROM_LINE.finditer(data)]
    ends = [start for start, _ in starts[1:]] + [len(data)]
    for (_, start), end in zip(starts, ends, strict=False):
        yield QUOTED_FROM.sub(rb"\1", data[start:end])


def _parsed(data: bytes) -> EmailMessage:
    message = BytesParser(policy=ShortHeaders()).parsebytes(data)
    assert isinstance(message, EmailMessage)
    return message


def _text(message: EmailMessage) -> str:
    """The headers, the body as plain text, and the names of the attachments."""
    headers = [f"{name}: {value}" for name in SHOWN if (value := _header(message, name))]
    names = [one_line(part.get_filename() or part.get_content_type()) for part in _attachments(message)]
    attached = [f"Attachments: {', '.join(names)}"] if names else []
    return "\n\n".join(["\n".join(headers), _body(message).strip(), *attached])


def _header(message: Message, name: str) -> str:
    """A header on one line; "" if it is missing or cannot be decoded."""
    try:
        return one_line(str(message.get(name, "")))
    except Exception:  # The parser of headers raises many kinds of error for malformed ones.
        return ""


def _body(message: EmailMessage) -> str:
    try:
        part = message.get_body(("plain", "html"))
    except Exception:  # Likewise for malformed structures.
        part = None
    if part is None:
        return ""
    payload = part.get_payload(decode=True)
    text = _decoded(payload if isinstance(payload, bytes) else b"", part.get_content_charset() or "utf-8")
    return markdown(text)[0] if part.get_content_subtype() == "html" else text


def _decoded(payload: bytes, charset: str) -> str:
    try:
        return payload.decode(charset)
    except (LookupError, UnicodeDecodeError):
        return payload.decode("cp1252", errors="replace")


def _attachments(message: EmailMessage) -> Iterator[Message]:
    for part in message.walk():
        if part.get_content_disposition() == "attachment" or (
            part.get_filename() and not part.is_multipart()
        ):
            yield part
