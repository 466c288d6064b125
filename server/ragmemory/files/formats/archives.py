"""ZIP archives, such as office files and e-books: checked before anything is decompressed."""

from __future__ import annotations

import zlib
from io import BytesIO
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.read import Damaged

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MOST_MEMBERS = 20_000
# Bytes of all members, decompressed. `zipfile` never reads more of a member than its declared size.
MOST_BYTES = 512 << 20
# Bytes of one member of XML, which takes some ten times as much memory as a tree.
MOST_XML_BYTES = 128 << 20
# OLE files: the older formats of Office, and the newer ones with a password.
OLE = bytes.fromhex("d0cf11e0a1b11ae1")


def open_archive(data: bytes, kind: str) -> ZipFile:
    """An archive within the limits. `kind` is the format, for the reason. Raises NotText."""
    if data.startswith(OLE):
        raise NotText(
            "is encrypted with a password, or in the format of an older program: save it again without one"
        )
    try:
        archive = ZipFile(BytesIO(data))
    except (BadZipFile, ValueError, NotImplementedError):
        raise Damaged(kind) from None
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise NotText(f"holds more than {MOST_MEMBERS:,} files")
    if sum(member.file_size for member in members) > MOST_BYTES:
        raise NotText(f"holds more than {MOST_BYTES >> 20} MiB when it is decompressed")
    if any(member.flag_bits & 1 for member in members):
        raise NotText("is encrypted with a password")
    return archive


def member(archive: ZipFile, name: str, kind: str) -> bytes:
    """The content of a member. Raises NotText."""
    try:
        info = archive.getinfo(name)
        if info.file_size > MOST_XML_BYTES:
            raise NotText(f"holds a part of more than {MOST_XML_BYTES >> 20} MiB")
        return archive.read(info)
    except (KeyError, BadZipFile, zlib.error, EOFError, NotImplementedError):
        raise Damaged(kind) from None


def xml(archive: ZipFile, name: str, kind: str) -> Element:
    """A member of XML. Document type declarations, and so entities, are refused. Raises NotText."""
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
