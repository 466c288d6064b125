"""The part of our environment that every server inherits.

Not all of it: keys and tokens of other programs are often there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

# The lists of MCP's SDKs, and how programs find their files and reach the network.
INHERITED = frozenset(
    name
    for names in (
        "HOME LOGNAME PATH SHELL TERM USER TZ LANG LANGUAGE TMPDIR TMP TEMP NO_COLOR VIRTUAL_ENV",
        "APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA NUMBER_OF_PROCESSORS PATHEXT PROGRAMDATA",
        "PROCESSOR_ARCHITECTURE PROGRAMFILES SYSTEMDRIVE SYSTEMROOT USERNAME USERPROFILE WINDIR",
        "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY REQUESTS_CA_BUNDLE CURL_CA_BUNDLE",
    )
    for name in names.split()
)
INHERITED_PREFIXES = ("LC_", "XDG_", "SSL_")


def inherited(environ: Mapping[str, str] = os.environ, more: tuple[str, ...] = ()) -> dict[str, str]:
    """The variables that any server gets, and those whose names begin with one of `more`."""
    return {
        name: value
        for name, value in environ.items()
        # Proxies are usually set in lower case.
        if name.upper() in INHERITED or name.upper().startswith((*INHERITED_PREFIXES, *more))
    }
