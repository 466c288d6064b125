"""The outcome of a campaign: how often something was tried, what was lost, and what hung."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.raw_memory import Ended, Hung, Refused


@dataclass
class Outcome:
    """`lost` and `hung` are sentences, one for each: a write, a right answer, a file, a memory."""

    campaign: str
    count: int = 0
    lost: list[str] = field(default_factory=list)
    hung: list[str] = field(default_factory=list)

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Count one, and what goes wrong in it."""
        self.count += 1
        try:
            yield
        except Hung as error:
            self.hung.append(f"{what}: {error}")
        except Refused as error:
            self.lost.append(f"{what}: refused with {error}")
        except Ended as error:
            self.lost.append(f"{what}: the process ended before it answered {error}")
        except Exception as error:  # a long run goes on, and says at its end what happened
            self.lost.append(f"{what}: {error!r}")
