"""Containers based on ZIP, such as office files and e-books: limits are checked before decompressing."""

from __future__ import annotations

import zlib
from io import BytesIO
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.file_text import Damaged

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_MEMBERS = 20_000
# Decompressed bytes of all members. `zipfile` never reads more of a member than its declared size.
MAX_BYTES = 512 << 20
# Bytes of one XML member. Its tree takes about ten times as much memory.
MAX_XML_BYTES = 128 << 20
# OLE files: the older Office formats, and newer files with a password.
OLE = bytes.fromhex("d0cf11e0a1b11ae1")


def open_archive(data: bytes, kind: str) -> ZipFile:
    """Open an archive within the limits. `kind` names the format in errors. Raises NotText."""
    if data.startswith(OLE):
        raise NotText(
            "is encrypted with a password, or in the format of an older program: save it again without one"
        )
    try:
        archive = ZipFile(BytesIO(data))
    except (BadZipFile, ValueError, NotImplementedError):
        raise Damaged(kind) from None
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise NotText(f"holds more than {MAX_MEMBERS:,} files")
    if sum(member.file_size for member in members) > MAX_BYTES:
        raise NotText(f"holds more than {MAX_BYTES >> 20} MiB when it is decompressed; unpack or split it")
    if any(member.flag_bits & 1 for member in members):
        raise NotText("is encrypted with a password")
    return archive


def member(archive: ZipFile, name: str, kind: str) -> bytes:
    """The content of a member. Raises NotText."""
    try:
        info = archive.getinfo(name)
        if info.file_size > MAX_XML_BYTES:
            raise NotText(f"holds a part of more than {MAX_XML_BYTES >> 20} MiB; split it")
        return archive.read(info)
    except (KeyError, BadZipFile, zlib.error, EOFError, NotImplementedError):
        raise Damaged(kind) from None


def xml(archive: ZipFile, name: str, kind: str) -> Element:
    """Parse an XML member; entities are refused. Raises NotText."""
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root: Element = fromstring(member(archive, name, kind), forbid_dtd=False, forbid_entities=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        raise Damaged(kind) from None
    return root


def local(tag: object) -> str:
    """The name of an element or attribute without its namespace; "" for a comment."""
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Element, name: str, default: str = "") -> str:
    """An attribute by its name without the namespace."""
    return next((value for key, value in element.attrib.items() if local(key) == name), default)
