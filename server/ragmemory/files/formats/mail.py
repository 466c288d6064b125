"""E-mail: single messages (.eml, Apple's .emlx) and mailboxes (.mbox), whose places are the messages.

Also web pages that a browser saved as a message with their images (.mhtml, .mht).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from email.message import EmailMessage, Message
from email.parser import BytesFeedParser
from email.policy import EmailPolicy
from email.utils import parseaddr, parsedate_to_datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from ragcommon.files.decoding import decode_as
from ragmemory.files.formats.file_text import (
    MAX_CHARACTERS,
    Damaged,
    FileText,
    TextBuilder,
    TooMuchText,
    closed,
    listed,
    one_line,
)
from ragmemory.files.formats.html import markdown
from ragmemory.files.formats.html import read as read_html
from ragmemory.files.formats.members import Members
from ragmemory.files.formats.quotations import Quotations
from ragmemory.files.formats.scans import current

PAGES = (".mhtml", ".mht")
# Apple Mail writes the bytes of the message above it, and a property list below.
APPLE, APPLE_SIZE = ".emlx", re.compile(rb"\s*(\d{1,12})[ \t]*\r?\n")
SHOWN = ("From", "To", "Cc", "Date", "Subject")
# Begins a message in a mailbox, after an empty line.
FROM_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\r\n\r\n))From [^\r\n]*\r?\n")
QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
MAX_MESSAGES = 100_000
# Attachments of these types are only named, except images if images are read.
NO_TEXT = ("image", "audio", "video")
MESSAGE = "message/rfc822"
# Characters of a header that are parsed: Python's parser takes quadratic time.
MAX_HEADER = 10_000
# Characters of a subject in the heading of a message; a heading has at most 300.
MAX_SUBJECT = 200
# Above a reply or a forwarded message: "Re: AW: ", "Re[2]: ". A heading has one line of a card.
REPLY = re.compile(r"\A(?:(?:re|aw|antw|sv|fwd?|wg|tr|rv)(?:\[\d+\])?:\s*)+", re.IGNORECASE)
# An alternative with this many times fewer words than another is a stub.
STUB = 4
# What PGP adds to a text that is signed; its lines are quoted in replies.
SEAL = re.compile(
    r"^[> ]*-----BEGIN PGP SIGNATURE-----\r?\n(?:(?![> ]*-----).*\n)*[> ]*-----END PGP SIGNATURE-----\r?$"
    r"|^[> ]*-----BEGIN PGP SIGNED MESSAGE-----\r?\n(?:[> ]*Hash:.*\n)*",
    re.MULTILINE,
)
SEALS = ("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature")
# Bytes fed to the parser at a time: `parsebytes` takes ten times the memory of the message.
FED_BYTES = 1 << 16


class ShortHeaders(EmailPolicy):
    """The default policy, with headers truncated to MAX_HEADER."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:MAX_HEADER]

    def header_fetch_parse(self, name: str, value: str) -> Any:
        return _fetched(name, value)


# Parsing a header takes longer than its message, and each is asked for several times.
_fetched = lru_cache(maxsize=256)(EmailPolicy().header_fetch_parse)


def read(path: Path, data: bytes) -> FileText:
    """The messages of a file. Raises NotText."""
    if path.suffix.lower() in PAGES:
        return _page(path, data)
    builder = TextBuilder(by_paragraph=True)
    members = Members(builder)
    suffix = path.suffix.lower()
    if suffix == APPLE and (size := APPLE_SIZE.match(data)):
        data = data[size.end() : size.end() + int(size[1])]
    if suffix in (".eml", APPLE) or not FROM_LINE.match(data):
        message = _parsed(data)
        if not any(_header(message, name) for name in SHOWN):
            raise Damaged("e-mail")
        subject = _header(message, "Subject")
        _add(builder, members, message)
        return builder.build(subject or path.name, members.note)
    if note := _add_all(builder, members, data, _quotations(data)):
        # What was left out may stand only in messages that were not read: now, only in those above.
        builder = TextBuilder(by_paragraph=True)
        members = Members(builder)
        note = _add_all(builder, members, data, Quotations())
    return builder.build(path.name, "; ".join(filter(None, (note, members.note))))


def _page(path: Path, data: bytes) -> FileText:
    part = next((one for one in _parsed(data).walk() if one.get_content_type() == "text/html"), None)
    if part is None:
        raise Damaged("MHTML")
    # Without a charset here, the page declares its own.
    is_stated = part.get_content_charset() is not None
    return read_html(path, _text(part).encode("utf-8-sig", "replace") if is_stated else _content(part))


def _add_all(builder: TextBuilder, members: Members, data: bytes, quotations: Quotations) -> str:
    """Add the messages of a mailbox; return a note on those that are skipped."""
    number, unread = 0, list[str]()
    for number, raw in enumerate(_messages(data), 1):
        if number > MAX_MESSAGES:
            return f"only its first {MAX_MESSAGES:,} messages were read"
        place = f"message {number}"
        try:
            message = _parsed(raw)
            # Without a heading it would be below that of the message above.
            builder.add(f"# {_title(message) or place}", place)
            _add(builder, members, message, place, quotations)
        except TooMuchText as error:
            return f"{error}, and was read only up to message {number:,}"
        except MemoryError:
            raise
        except Exception:  # Malformed messages raise many kinds of error.
            unread.append(f"{number}")
    if not number:
        raise Damaged("mailbox")
    return f"has damaged messages that were not read: {listed(unread, '')}" if unread else ""


def _quotations(data: bytes) -> Quotations:
    """What the first messages of a mailbox say: as many as may be read. The newest may be the first."""
    found, left = Quotations(), MAX_CHARACTERS
    for raw in islice(_messages(data), MAX_MESSAGES):
        try:
            found.add(body := _body(_parsed(raw)))
        except MemoryError:
            raise
        except Exception:  # It is named when it is read.
            continue
        left -= len(body)
        if left < 0:
            break
    return found


def _messages(data: bytes) -> Iterator[bytes]:
    """The messages of a mailbox, without the lines between them."""
    lines = FROM_LINE.finditer(data)
    line = next(lines, None)
    while line is not None:
        following = next(lines, None)
        end = following.start() if following is not None else len(data)
        yield QUOTED_FROM.sub(rb"\1", data[line.end() : end])
        line = following


def _parsed(data: bytes) -> EmailMessage:
    parser = BytesFeedParser(policy=ShortHeaders())
    for start in range(0, len(data), FED_BYTES):
        parser.feed(data[start : start + FED_BYTES])
    message = parser.close()
    assert isinstance(message, EmailMessage)
    return message


def _add(
    builder: TextBuilder,
    members: Members,
    message: EmailMessage,
    place: str = "",
    quotations: Quotations | None = None,
) -> None:
    """Add the headers, the body as plain text, the names of all attachments, then those that can be read."""
    headers = [f"{name}: {value}" for name in SHOWN if (value := _header(message, name))]
    attachments = list(_attachments(message))
    names = [one_line(part.get_filename() or _kind(part)) for part in attachments]
    builder.add("\n".join(headers), place or "headers")
    body = _body(message)
    if quotations is not None:  # Only of a message whose headers can be read, so its body is read as well.
        body = quotations.without_repeated(body)
    builder.add(closed(body.strip()), place, counted=True)
    if names:
        builder.add(f"Attachments: {', '.join(names)}", place or "attachments")
    for name, part in zip(names, attachments, strict=True):
        kind = part.get_content_maintype()
        if kind not in NO_TEXT or (kind == "image" and current().with_images):
            content = _content(part)
            members.add(name, len(content), content.__bytes__, place)


def _title(message: Message) -> str:
    """The heading of a message in a mailbox: its subject, with its author and date."""
    date = ""
    with suppress(ValueError, TypeError, OverflowError):
        date = parsedate_to_datetime(_header(message, "Date")).strftime("%Y-%m-%d")
    name, address = parseaddr(_header(message, "From"))
    origin = ", ".join(filter(None, (name or address, date)))
    subject = REPLY.sub("", _header(message, "Subject"))[:MAX_SUBJECT]
    return f"{subject} ({origin})" if subject and origin else subject or origin


def _header(message: Message, name: str) -> str:
    """A header on one line; "" if it is missing or cannot be decoded."""
    try:
        return one_line(str(message.get(name, "")))
    except Exception:  # Malformed headers raise many kinds of error.
        return ""


def _body(message: EmailMessage) -> str:
    try:
        return SEAL.sub("", "\n\n".join(_texts(message)))
    except Exception:  # As do malformed structures.
        return ""


def _texts(part: Message) -> list[str]:
    """The texts of a message without its attachments.

    Of alternatives, the first, usually plain; also the others if it is a stub, which may point to the HTML.
    """
    kind = part.get_content_type()
    if part.is_multipart():
        parts = (one for one in part.get_payload() if isinstance(one, Message) and not _is_attached(one))
        texts = [text for one in parts for text in _texts(one)]
        if kind == "multipart/alternative":
            is_stub = STUB * _words(texts[0] if texts else "") < max(map(_words, texts), default=0)
            return [text.strip() for text in texts] if is_stub else texts[:1]
        return texts
    if kind not in ("text/plain", "text/html"):
        return []
    text = markdown(_text(part))[0] if kind == "text/html" else _text(part)
    return [text] if text.strip() else []


def _words(text: str) -> int:
    """The number of words. Addresses are none: HTML has those of links and pictures."""
    return sum("://" not in word and any(map(str.isalpha, word)) for word in text.split())


def _text(part: Message) -> str:
    content = _content(part)
    text = decode_as(content, part.get_content_charset() or "utf-8")
    return content.decode("cp1252", errors="replace") if text is None else text


def _kind(part: Message) -> str:
    """The label of an attachment without a file name."""
    kind = part.get_content_type()
    return "message.eml" if kind == MESSAGE else kind


def _content(part: Message) -> bytes:
    """The content of an attachment; a forwarded message is returned whole."""
    if part.get_content_type() == MESSAGE:
        return b"".join(bytes(inner) for inner in part.get_payload() if isinstance(inner, Message))
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _attachments(message: EmailMessage) -> Iterator[Message]:
    """The attachments and forwarded messages, but not their own attachments."""
    parts: list[Message] = [message]
    while parts:
        part = parts.pop()
        if part is not message and _is_attached(part):
            if part.get_content_type() not in SEALS:
                yield part
        elif part.is_multipart():
            parts += reversed([inner for inner in part.get_payload() if isinstance(inner, Message)])


def _is_attached(part: Message) -> bool:
    is_named = bool(part.get_filename()) and not part.is_multipart()
    return is_named or part.get_content_disposition() == "attachment" or part.get_content_type() == MESSAGE
