"""The environment variables that every server inherits: not all, as others may be keys and tokens."""

from __future__ import annotations

import os
from collections.abc import Mapping

# The lists of the MCP SDKs, and variables for finding files and reaching the network.
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
    """The inherited variables, and those whose names begin with one of `more`."""
    return {
        name: value
        for name, value in environ.items()
        # Proxies are usually set in lower case.
        if name.upper() in INHERITED or name.upper().startswith((*INHERITED_PREFIXES, *more))
    }
