"""Bounds the tests of this folder by time, when `make fuzz` runs them, and reports what each has done.

The run ends at FUZZ_UNTIL, in seconds since the epoch. Without that variable, as in `make full`, nothing here
has an effect.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis.errors import UnsatisfiedAssumption
from hypothesis.internal.conjecture import engine

from tests.fuzz.report import TestReport

# Seconds for making a failing example smaller; the next run goes on with it.
SHRINK_SECONDS = 5


class OutOfTime(KeyboardInterrupt):
    """Ends a test after its share of the time.

    A KeyboardInterrupt, because hypothesis keeps an example that raises anything else as a failing one.
    """


class TimedRun:
    """A test session that ends in time. Writes to the file `report` when a test begins, fails or ends."""

    def __init__(self, ends: float, report: Path) -> None:
        self._ends = ends
        self._report = report
        self._waiting = 0
        self._test_ends = self._ends
        self._current = TestReport("")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Tests that end by themselves run first: the others share what they leave."""
        items.sort(key=_takes_all_its_time)
        self._waiting = sum(map(_takes_all_its_time, items))

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, bool]:
        """Run one test within its share of the time."""
        now = time.time()
        if now >= self._ends:
            pytest.skip("no time is left")
        self._current = TestReport(pyfuncitem.nodeid)
        self._write()
        if _takes_all_its_time(pyfuncitem):
            self._test_ends = now + (self._ends - now) / self._waiting
            self._waiting -= 1
        try:
            with self._bounded(pyfuncitem.obj):
                yield
            self._current.state = "passed"
        except BaseException:
            self._current.state = "failed"
            raise
        finally:
            self._current.seconds = time.time() - now
            self._write()
        return True

    def has_time(self) -> bool:
        """Whether the current test may try another example; counts it."""
        if time.time() >= self._test_ends:
            return False
        self._current.examples += 1
        return True

    @contextmanager
    def _bounded(self, test: Any) -> Iterator[None]:
        """Let a hypothesis test stop, without an error, once its time is up."""
        handle = getattr(test, "hypothesis", None)
        if handle is None:
            yield
            return
        inner_test = handle.inner_test
        handle.inner_test = self._stopping(inner_test)
        try:
            yield
        except OutOfTime:
            pass
        finally:  # the cases of a parametrized test have one inner function in common
            handle.inner_test = inner_test

    def _stopping(self, test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def stopping(*args: Any, **kwargs: Any) -> None:
            has_time = self.has_time()
            if not has_time and not self._current.error:  # else it makes a failing example smaller
                raise OutOfTime
            try:
                test(*args, **kwargs)
            except Exception as error:
                if not self._current.error and not isinstance(error, UnsatisfiedAssumption):
                    self._current.error = f"{type(error).__name__}: {error}"[:500]
                    self._write()
                raise

        return stopping

    def _write(self) -> None:
        with self._report.open("ab") as file:
            file.write(msgspec.json.encode(self._current) + b"\n")


def _takes_all_its_time(item: pytest.Item) -> bool:
    """Whether a test has always another example to try."""
    is_property = hasattr(getattr(item, "obj", None), "hypothesis")
    return is_property or "has_time" in getattr(item, "fixturenames", ())


def pytest_configure(config: pytest.Config) -> None:
    if until := os.environ.get("FUZZ_UNTIL"):
        engine.MAX_SHRINKING_SECONDS = SHRINK_SECONDS
        run = TimedRun(float(until), Path(os.environ["FUZZ_REPORT"]))
        config.pluginmanager.register(run, "timed-run")


@pytest.fixture
def has_time(request: pytest.FixtureRequest) -> Callable[[], bool]:
    """Whether another example may be tried. For tests that go through a long list of their own."""
    run: TimedRun | None = request.config.pluginmanager.get_plugin("timed-run")
    return run.has_time if run else lambda: True
