"""The topic of a request for what documents say about it. Pure.

The requests are in `ragconfig/topics.toml`.
"""

from __future__ import annotations

import re

from ragchat.grounding.words import content_words
from ragconfig.settings import packaged

# Longer questions are no such requests.
MAX_CHARACTERS = 200

_FILE = packaged("topics.toml")
_REQUESTS = [
    re.compile(rf"\W*+{request.format(**_FILE['names'])}\W*+", re.IGNORECASE) for request in _FILE["requests"]
]


def topic_of(question: str) -> str:
    """What is to be searched for: "bees" for "my notes on bees"; any other question itself."""
    if len(question) > MAX_CHARACTERS:
        return question
    request = " ".join(question.split())
    found = next(filter(None, (one.fullmatch(request) for one in _REQUESTS)), None)
    return found["topic"] if found and content_words(found["topic"]) else question
