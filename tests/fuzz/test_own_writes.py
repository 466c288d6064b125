"""Read your writes: an acknowledged document is among the hits of its own word, right after it was written.
The index that has followed all of it gives the hits and scores of one that is made again.

Two processes share one memory. Documents are added, changed, removed, taken back and restored, several at a
time, while others read; processes end and are killed, the embedder changes, and parts of the index are lost.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from tests.fuzz.wire import IS_SHORT
from tests.support.embeddings_server import EmbeddingsServer, embeddings_server
from tests.support.raw_memory import INDEX, RawMemory, Refused, check_integrity, raw_memory, result_of

# Steps of a test run, some seconds. In `make fuzz`, steps after which another memory is begun.
FEW, MANY = 12, 300
PROCESSES = 2
# Documents of a memory, those that are written at the same time, and long ones, which are written and removed
# page by page; and the sections of those.
SHORT, MOST_AT_ONCE, LONG = 60, 12, 3
SECTIONS = 450

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SYLLABLES = [first + second for first in "bcdfghklmnprstvwz" for second in "aeiou"]
ENDINGS = ["", "", "ing", "ed", "s", "ly", "ness"]
COMMON = ["the", "harbour", "opens", "when", "tide", "and", "wind", "allow", "ferries", "in", "summer"]
TEXTS = [
    "The code is {word}. ",
    "# {word}\n\nA note without any other word. ",
    "# Report\n\nThe finding of report {word} is written down here.\n\n" + "More of it. " * 200,
    "Nothing but {word} and {word} again.\n\nThen another paragraph about ferries in summer. ",
]
DIMENSIONS = 32


class Change(NamedTuple):
    """A call that changes a document, and the word that this then holds; None: there is none any more."""

    tool: str
    uri: str
    word: str | None
    arguments: dict[str, Any]


@dataclass
class Own:
    """One memory: its processes, and what they have acknowledged."""

    seed: int
    folder: Path
    embeddings: EmbeddingsServer
    stack: ExitStack
    is_local: bool = True
    processes: list[RawMemory] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)  # by the word that only this text holds
    held: dict[str, str | None] = field(default_factory=dict)  # by uri
    before: dict[str, list[str | None]] = field(default_factory=dict)  # what undos bring back
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)

    def begin(self) -> None:
        while len(self.processes) < PROCESSES:
            self.start()

    def start(self) -> RawMemory:
        other = {
            "RAGCHAT_EMBEDDER_KIND": "openai",
            "RAGCHAT_EMBEDDER_BASE_URL": self.embeddings.url,
            "OPENAI_API_KEY": "none",
        }
        memory = self.stack.enter_context(raw_memory(self.folder, **({} if self.is_local else other)))
        self.processes.append(memory)
        return memory

    def end(self, memory: RawMemory, *, killed: bool) -> None:
        self.processes.remove(memory)
        if killed:
            memory.kill()
        else:
            memory.end()

    def step(self) -> None:
        steps: dict[Callable[[RawMemory], None], int] = {
            self.write: 60,
            self.undo_last: 20,
            self.write_long: 8,
            self.restart: 3,
            self.kill: 3,
            self.reembed: 1,
            self.lose_index: 1,
        }
        [step] = self.chance.choices([*steps], [*steps.values()])
        self.log.append(step.__name__)
        step(self.chance.choice(self.processes))

    def write(self, memory: RawMemory) -> None:
        self.make(memory, self.changes(memory))

    def write_long(self, memory: RawMemory) -> None:
        uris = [f"long{self.chance.randrange(LONG)}", f"d{self.chance.randrange(SHORT)}"]
        self.make(memory, [self.change(memory, uri) for uri in uris])

    def undo_last(self, memory: RawMemory) -> None:
        entries = memory.call("list_journal", limit=1)["entries"]
        if entries and not entries[0]["undone"] and entries[0]["action"] != "restored":
            uri = entries[0]["uri"]
            self.make(memory, [Change("undo_writes", uri, self.before[uri][-1], {})])

    def restart(self, memory: RawMemory) -> None:
        self.end(memory, killed=False)
        self.ask_for_some(self.start())

    def kill(self, memory: RawMemory) -> None:
        changes = self.changes(memory)
        if self.chance.random() < 0.3:
            changes.append(self.change(memory, "long0"))
        left = self.make(memory, changes, kill_after=self.chance.randint(0, len(changes)))
        self.end(memory, killed=True)
        memory = self.start()
        for change in left:
            if self.is_made(memory, change):
                self.note(change)
        self.ask_for_some(memory)

    def reembed(self, _: RawMemory) -> None:
        for memory in [*self.processes]:
            self.end(memory, killed=self.chance.random() < 0.3)
        self.is_local = not self.is_local
        self.begin()
        if self.held:
            self.processes[0].call("reembed_memory")
        for memory in self.processes:
            self.ask_for_some(memory)

    def lose_index(self, memory: RawMemory) -> None:
        self.end(memory, killed=self.chance.random() < 0.5)
        for path in (self.folder / INDEX).glob("*.index"):
            if self.chance.random() < 0.5:
                with suppress(FileNotFoundError):  # The other process may have merged it.
                    path.unlink()
        self.ask_for_some(self.start())

    def make_index_again(self) -> None:
        """The index gives the same hits and scores when it is made again."""
        questions = [
            *self.chance.sample([*self.texts], min(len(self.texts), MOST_AT_ONCE)),
            "ferries in summer",
        ]
        found = [self.processes[0].call("Query", query=question)["hits"] for question in questions]
        for memory in [*self.processes]:
            self.end(memory, killed=False)
        shutil.rmtree(self.folder / INDEX, ignore_errors=True)
        memory = self.start()
        again = [memory.call("Query", query=question)["hits"] for question in questions]
        assert again == found, (self.seed, self.log[-40:])
        self.end(memory, killed=False)

    def changes(self, memory: RawMemory) -> list[Change]:
        """Changes of some documents."""
        numbers = self.chance.sample(range(SHORT), self.chance.randint(1, MOST_AT_ONCE))
        return [self.change(memory, f"d{number}") for number in numbers]

    def change(self, memory: RawMemory, uri: str) -> Change:
        before = self.before.get(uri, [])
        kind = self.chance.choices(["inject", "delete", "undo", "restore"], [10, 2, 3, 2])[0]
        if kind == "delete" and self.held.get(uri):
            return Change("delete_document", uri, None, {"document": uri})
        if kind in ("undo", "restore") and before:
            current, *earlier = memory.call("list_versions", document=uri)["versions"]
            if kind == "undo":
                return Change("undo_writes", uri, before[-1], {"numbers": [current["number"]]})
            kept = [
                (one["number"], word) for one, word in zip(earlier, reversed(before), strict=False) if word
            ]
            if kept:
                number, word = self.chance.choice(kept)
                return Change("restore_version", uri, word, {"document": uri, "version": number})
        word = self.new_word()
        self.texts[word] = self.text(uri, word)
        return Change("Inject", uri, word, {"text": self.texts[word], "metadata": {"uri": uri}})

    def make(self, memory: RawMemory, changes: list[Change], kill_after: int = -1) -> list[Change]:
        """Make all at the same time, and ask for each document once it is acknowledged, while others read.

        Those that are not acknowledged: the process is killed after so many are.
        """
        waiting: dict[str, Change | str | None] = {}
        for number, change in enumerate(changes):
            memory.send(f"change {number}", change.tool, change.arguments)
            waiting[f"change {number}"] = change
        for number, (tool, arguments) in enumerate(self.readings()):
            memory.send(f"read {number}", tool, arguments)
            waiting[f"read {number}"] = None
        answers, is_killed = memory.answers(), False
        while waiting:
            if kill_after == 0:
                memory.kill()
                is_killed = True
            message = next(answers, None)
            if message is None:
                assert is_killed, self.log[-20:]
                break
            if message.get("id") not in waiting:
                continue
            asked = waiting.pop(message["id"])
            if isinstance(asked, Change):
                result_of(message)
                self.note(asked)
                kill_after -= 1
                if asked.word and kill_after and not is_killed:
                    memory.send(f"ask for {asked.uri}", "Query", {"query": asked.word})
                    waiting[f"ask for {asked.uri}"] = asked.uri
            elif asked:
                self.check(asked, result_of(message))
        return [change for change in waiting.values() if isinstance(change, Change)]

    def readings(self) -> list[tuple[str, dict[str, Any]]]:
        """What others read meanwhile."""
        uri = self.chance.choice([*self.held, "none"])
        every: list[tuple[str, dict[str, Any]]] = [
            ("list_versions", {"document": uri}),
            ("list_documents", {}),
            ("list_journal", {}),
            ("get_document", {"document": uri}),
            ("search_code", {"query": "ferries"}),
            ("Query", {"query": "summer ferries"}),
        ]
        return self.chance.choices(every, k=self.chance.randint(0, 6))

    def note(self, change: Change) -> None:
        held = self.held.get(change.uri)
        if change.tool == "undo_writes":
            self.before[change.uri].pop()
        elif change.word != held:
            self.before.setdefault(change.uri, []).append(held)
        self.held[change.uri] = change.word
        self.log.append(f"{change.tool} {change.uri}: {held} -> {change.word}")

    def is_made(self, memory: RawMemory, change: Change) -> bool:
        """Whether a change that was never acknowledged was made: wholly, or not at all."""
        try:
            text = memory.call("get_document", document=change.uri, max_tokens=1_000_000)["text"]
        except Refused:
            text = None
        held = self.held.get(change.uri)
        assert text in (held and self.texts[held], change.word and self.texts[change.word]), change
        return bool(text == (change.word and self.texts[change.word]))

    def ask_for_some(self, memory: RawMemory) -> None:
        there = [uri for uri, word in self.held.items() if word]
        for uri in self.chance.sample(there, min(len(there), MOST_AT_ONCE)):
            self.check(uri, memory.call("Query", query=self.held[uri]))

    def check(self, uri: str, found: dict[str, Any]) -> None:
        word = self.held[uri]
        holding = [hit["uri"] for hit in found["hits"] if word and word in hit["text"]]
        assert uri in holding, (
            word,
            [(hit["uri"], hit["text"][:60]) for hit in found["hits"]],
            self.log[-40:],
        )

    def new_word(self) -> str:
        """One that no other text holds; nor does a usual one begin like it, which may have the same stem."""
        known = {word.casefold() for word in self.texts}
        usual = " ".join([*TEXTS, *COMMON]).casefold()
        while True:
            word = self.some_word()
            folded = word.casefold()
            if len(word) >= 4 and folded not in known and folded[:4] not in usual:
                return word

    def some_word(self) -> str:
        chance = self.chance
        made = "".join(chance.choices(SYLLABLES, k=chance.randint(2, 4)))
        match chance.randrange(6):
            case 0:
                return f"k{chance.randrange(300)}n{chance.randrange(100)}"
            case 1:
                return str(chance.randrange(1_000, 100_000))
            case 2 if self.texts:  # one letter from another
                word = chance.choice([*self.texts])
                at = chance.randrange(len(word))
                return word[:at] + chance.choice(LETTERS) + word[at + chance.randrange(2) :]
            case 3:  # a part of others
                return made.title() + chance.choice("ABC") + "Q" + chance.choice("ABC")
            case 4:
                return "z" + "".join(chance.choices(LETTERS, k=chance.randint(3, 8)))
        return made + chance.choice(ENDINGS)

    def text(self, uri: str, word: str) -> str:
        if uri.startswith("long"):
            parts = [f"# Part {n}\n\nIt tells of p{self.chance.getrandbits(32)}q.\n" for n in range(SECTIONS)]
            parts.insert(self.chance.randrange(SECTIONS), f"# A part\n\nIt holds {word} alone.\n")
            return "\n".join(parts)
        more = " ".join(self.chance.choices(COMMON, k=self.chance.choice([0, 0, 5, 60])))
        return self.chance.choice(TEXTS).format(word=word) + more


def embedded(text: str) -> list[float]:
    """A vector of the words of a text: those of texts without common words are as good as independent."""
    return [sum(one) for one in zip(*map(direction, text.casefold().split()), strict=True)]


@cache
def direction(word: str) -> list[float]:
    chance = Random(word)
    return [chance.gauss(0, 1) for _ in range(DIMENSIONS)]


@pytest.fixture(scope="module")
def embeddings() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as server:
        server.embed = embedded
        yield server


def test_an_acknowledged_document_is_among_the_hits_of_its_own_word(
    tmp_path: Path, embeddings: EmbeddingsServer, has_time: Callable[[], bool]
) -> None:
    seed = 1 if IS_SHORT else Random().getrandbits(32)
    while has_time():
        folder = tmp_path / str(seed)
        folder.mkdir()
        with ExitStack() as stack:
            own = Own(seed, folder, embeddings, stack)
            own.begin()
            for _ in range(FEW if IS_SHORT else MANY):
                if not has_time():
                    break
                own.step()
            own.make_index_again()
        check_integrity(folder)
        if IS_SHORT:
            break
        shutil.rmtree(folder)
        seed += 1
