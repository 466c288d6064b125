"""The passages of a turn: which hits the model gets, how they are numbered and quoted. Pure.

Passages are untrusted text. The tags around them carry a random word that occurs in no passage, so that no
passage can close its own tag.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ragchat.answer import Candidate
from ragchat.llm import tokens
from ragchat.memory.types import DocumentText
from ragcommon.contract.search import Hit
from ragcommon.text.places import label, within
from ragcommon.text.rules import LINE, passage_names

# The reason of candidates that the user attached: whole documents, or their beginnings.
ATTACHED = "attached"
NO_ROOM = "cut: no room within the budget for passages"
# The minimum size, in characters, of a passage of an attached document with pages or similar places.
PIECE = 3_000
# An upper bound for the tags around a passage, without its source.
TAGS_TOKENS = 60


@dataclass(frozen=True)
class Passages:
    """All candidates of a turn. The numbered ones are in the prompt, where they take `tokens`."""

    candidates: list[Candidate]
    tokens: int

    def numbered(self) -> dict[int, Hit]:
        return {candidate.n: candidate.hit for candidate in self.candidates if candidate.n}

    def left_out(self, found: Collection[int]) -> int:
        """How many relevant passages among these ids had no room."""
        numbered = {hit.chunk_id for hit in self.numbered().values()}
        cut = {one.hit.chunk_id for one in self.candidates if one.reason == NO_ROOM}
        return len(cut.intersection(found) - numbered)

    def extended(self, candidates: Sequence[Candidate], budget: int) -> Passages:
        """Add the relevant new `candidates` of a tool that fit into `budget` tokens."""
        numbered = self.numbered()
        known = {hit.chunk_id for hit in numbered.values()}
        new = [candidate for candidate in candidates if candidate.hit.chunk_id not in known]
        added = number(new, budget, first=len(numbered) + 1)
        return Passages(self.candidates + added.candidates, self.tokens + added.tokens)


def as_candidate(hit: Hit, min_score: float) -> Candidate:
    """A hit as a candidate: it is used if its score is at least `min_score`."""
    if hit.score >= min_score:
        return Candidate(hit, True, "relevant")
    return Candidate(hit, False, f"not relevant: its score {hit.score:.2f} is below {min_score:.2f}")


def attached(documents: Iterable[DocumentText]) -> list[Candidate]:
    """Attached documents as passages, of one or more pages each if they have pages."""
    pieces = [piece for document in documents for piece in _pieces(document)]
    return [
        # Negative ids: these are not stored chunks.
        Candidate(replace(piece, rank=number, chunk_id=-number), True, ATTACHED)
        for number, piece in enumerate(pieces, 1)
    ]


def _pieces(document: DocumentText) -> Iterator[Hit]:
    """Split a document at its places into pieces of at least PIECE characters, except the last one."""
    lines = LINE.findall(document.text) or [""]
    starts, size = [1], 0
    beginnings = {line for line, _ in document.places}
    for number, line in enumerate(lines, 1):
        if number in beginnings and size >= PIECE:
            starts.append(number)
            size = 0
        size += len(line)
    for start, end in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        text = "".join(lines[start - 1 : end - 1])
        last = start + text.rstrip().count("\n")
        yield Hit(
            rank=0,
            score=1.0,
            chunk_id=0,
            document_id=document.document_id,
            uri=document.uri,
            title=document.title,
            heading="",
            start_line=start,
            end_line=last,
            text=text,
            metadata=document.metadata,
            written_by=document.written_by,
            places=list(within(document.places, start, last)),
        )


def shortened(candidates: Sequence[Candidate], budget: int) -> list[Candidate]:
    """Attached documents, of which the longest are truncated so that all fit into `budget` tokens."""
    documents: dict[str, list[Hit]] = {}
    for candidate in candidates:
        documents.setdefault(candidate.hit.document_id, []).append(candidate.hit)
    sizes = {id: sum(map(_most_tokens, pieces)) for id, pieces in documents.items()}
    fitting, room = dict[str, list[Candidate]](), budget
    for left, id in enumerate(sorted(sizes, key=sizes.__getitem__)):
        share = min(sizes[id], room // (len(sizes) - left))
        room -= share
        fitting[id] = list(_cut(documents[id], share))
    return [candidate for id in documents for candidate in fitting[id]]


def _cut(pieces: Sequence[Hit], budget: int) -> Iterator[Candidate]:
    """The pieces of a document, truncated after the last line that fits into `budget` tokens."""
    kept: list[Hit] = []
    for piece in pieces:
        kept.append(_beginning(piece, budget))
        budget -= _most_tokens(kept[-1])
        if kept[-1] is not piece:
            break
    length, shown = (sum(len(hit.text) for hit in hits) for hits in (pieces, kept))
    reason = ATTACHED
    if shown < length:
        reason = f"{ATTACHED}: the first {shown:,} of {length:,} characters fit"
    return (Candidate(hit, True, reason) for hit in kept if hit.text or len(kept) == 1)


def _beginning(hit: Hit, budget: int) -> Hit:
    """A hit, truncated after the last line that fits into `budget` tokens."""
    while (size := _most_tokens(hit)) > budget and hit.text:
        text = hit.text[: min(len(hit.text) - 1, len(hit.text) * max(budget, 0) // size)]
        text = text[: text.rfind("\n") + 1] or text
        hit = replace(hit, text=text, end_line=hit.text_line + text.rstrip().count("\n"))
    return hit


def _most_tokens(hit: Hit) -> int:
    """An upper bound for a quoted passage with its tags."""
    return tokens.at_most(hit.full_text + _source(hit)) + TAGS_TOKENS


def number(candidates: Iterable[Candidate], room: int, first: int = 1, budget: int | None = None) -> Passages:
    """Number the relevant candidates from `first` while their upper bounds fit into `room` tokens.

    Their mean estimates must fit into `budget`; None: no such limit.
    """
    judged, taken, estimated = [], 0, 0
    for candidate in candidates:
        if candidate.used:
            text = quote({first: candidate.hit})
            most, mean = tokens.at_most(text), tokens.mean(text)
            if taken + most > room or (budget is not None and estimated + mean > budget):
                candidate = Candidate(candidate.hit, False, NO_ROOM)
            else:
                candidate = Candidate(candidate.hit, True, candidate.reason, first)
                first += 1
                taken += most
                estimated += mean
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


def markers(numbers: Iterable[int]) -> str:
    """Numbers as citations: `[1], [2]`."""
    return ", ".join(f"[{n}]" for n in numbers)
