"""The passages of a turn: which hits the model gets, how they are numbered and quoted. Pure.

Passages are other people's text. The tags around each of them carry a random word that occurs in none, so
that no passage can end its own quotation.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ragchat.llm import tokens
from ragchat.memory.types import DocumentText
from ragchat.types import Candidate, Hit
from ragconfig.places import label
from ragconfig.text_rules import passage_names

# The reason of candidates that the user chose: whole documents, or their beginnings.
ATTACHED = "attached"
NO_ROOM = "cut: no room within the budget for passages"
# The most tokens of the tags around a passage, without its source.
TAGS_TOKENS = 60


@dataclass(frozen=True)
class Passages:
    """All candidates of a turn. Those with a number are in the prompt and take `tokens` of it."""

    candidates: list[Candidate]
    tokens: int

    def numbered(self) -> dict[int, Hit]:
        return {candidate.n: candidate.hit for candidate in self.candidates if candidate.n}

    def left_out(self, found: Collection[int]) -> int:
        """How many of the passages with these ids are relevant, but had no room."""
        numbered = {hit.chunk_id for hit in self.numbered().values()}
        cut = {one.hit.chunk_id for one in self.candidates if one.reason == NO_ROOM}
        return len(cut.intersection(found) - numbered)

    def extended(self, candidates: Sequence[Candidate], budget: int) -> Passages:
        """These, and the relevant new `candidates` of a tool that fit into `budget` tokens."""
        numbered = self.numbered()
        known = {hit.chunk_id for hit in numbered.values()}
        new = [candidate for candidate in candidates if candidate.hit.chunk_id not in known]
        added = number(new, budget, first=len(numbered) + 1)
        return Passages(self.candidates + added.candidates, self.tokens + added.tokens)


def judge(hit: Hit, min_score: float) -> Candidate:
    """A hit as a candidate: it is used if its score is at least `min_score`."""
    if hit.score >= min_score:
        return Candidate(hit, True, "relevant")
    return Candidate(hit, False, f"not relevant: its score {hit.score:.2f} is below {min_score:.2f}")


def attached(documents: Iterable[DocumentText]) -> list[Candidate]:
    """Whole documents as passages that a question is asked about."""
    return [
        Candidate(_whole(document, number), True, ATTACHED) for number, document in enumerate(documents, 1)
    ]


def _whole(document: DocumentText, number: int) -> Hit:
    return Hit(
        rank=number,
        score=1.0,
        chunk_id=-number,  # it is no stored chunk
        document_id=document.document_id,
        uri=document.uri,
        title=document.title,
        heading="",
        start_line=1,
        end_line=document.text.rstrip().count("\n") + 1,
        text=document.text,
    )


def shortened(candidates: Sequence[Candidate], budget: int) -> list[Candidate]:
    """Attached documents, the longest of them cut so that all fit into `budget` tokens."""
    sizes = [_most_tokens(candidate.hit) for candidate in candidates]
    shares, room = dict[int, int](), budget
    for left, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[index] = min(sizes[index], room // (len(sizes) - left))
        room -= shares[index]
    return [_cut(candidate, shares[index]) for index, candidate in enumerate(candidates)]


def _cut(candidate: Candidate, budget: int) -> Candidate:
    """A candidate with as many whole lines, from its first, as fit into `budget` tokens."""
    hit, length = candidate.hit, len(candidate.hit.text)
    while (size := _most_tokens(hit)) > budget and hit.text:
        text = hit.text[: min(len(hit.text) - 1, len(hit.text) * budget // size)]
        text = text[: text.rfind("\n") + 1] or text
        hit = replace(hit, text=text, end_line=text.rstrip().count("\n") + 1)
    if hit is candidate.hit:
        return candidate
    return Candidate(hit, True, f"{ATTACHED}: the first {len(hit.text):,} of {length:,} characters fit")


def _most_tokens(hit: Hit) -> int:
    """An upper bound for a quoted passage, whatever random word its tags carry."""
    return tokens.at_most(hit.full_text + _source(hit)) + TAGS_TOKENS


def number(candidates: Iterable[Candidate], budget: int, first: int = 1) -> Passages:
    """Number the relevant candidates that fit into `budget` tokens, counting from `first`."""
    judged, taken = [], 0
    for candidate in candidates:
        if candidate.used:
            size = tokens.at_most(quote({first: candidate.hit}))
            if taken + size > budget:
                candidate = Candidate(candidate.hit, False, NO_ROOM)
            else:
                candidate = Candidate(candidate.hit, True, candidate.reason, first)
                first += 1
                taken += size
        judged.append(candidate)
    return Passages(judged, taken)


def quote(hits: dict[int, Hit]) -> str:
    """Numbered passages between tags that their text cannot forge."""
    word = _random_word("".join(hit.full_text + hit.title + hit.heading + hit.uri for hit in hits.values()))
    return "\n\n".join(
        f"<passage {n} {word} from {_source(hit)}>\n{hit.full_text.strip()}\n</passage {n} {word}>"
        for n, hit in hits.items()
    )


def _random_word(text: str) -> str:
    """A word that does not occur in `text`."""
    while (word := secrets.token_hex(4)) in text:
        pass
    return word


def _source(hit: Hit) -> str:
    """Title, heading path and place on one line."""
    where = label(hit.places, hit.start_line, hit.end_line)
    line = f" {where}" if where else f":{hit.start_line}"
    place = [] if hit.uri.startswith("sha256:") else [f"({hit.uri}{line})"]
    return " ".join((" > ".join(passage_names(hit.title, hit.heading)) + " " + " ".join(place)).split())
