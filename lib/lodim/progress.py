"""Progress display of long calls: a line on standard error after three seconds, or tqdm's bars."""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from lodim.errors import ArgumentError

AFTER = 3.0  # seconds until a call shows its progress
EVERY = 2.0  # seconds between updates of the line on a terminal
EVERY_LINE = 10.0  # seconds between lines elsewhere, such as in a log file

_display: ContextVar["Display | None"] = ContextVar("display", default=None)


@contextmanager
def showing(progress: Any, call: str) -> Iterator[None]:
    """Show the progress of a call in a `with` block; nested blocks share the display.

    call : name to show; progress : True, False, or None to show it after three seconds"""
    progress = bool(progress) if isinstance(progress, np.bool_) else progress
    if not (progress is None or isinstance(progress, bool)):
        words = f"None (after {AFTER:.0f} s), True or False"
        raise ArgumentError(f"progress must be {words}, not {progress!r}")
    if _display.get() is not None:
        yield
        return
    if progress is False or sys.stderr is None:
        display = Display(call)
    elif progress is None:
        display = Line(call, AFTER, sys.stderr)
    else:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            display = Line(call, 0.0, sys.stderr)
        else:
            display = Bars(call, tqdm)
    before = _display.set(display)
    try:
        with display:
            yield
    finally:
        _display.reset(before)


@contextmanager
def bar(total: int, what: str) -> Iterator["Step"]:
    """Show the task `what` of `total` steps; yield a Step, whose update(1) completes one step."""
    display = _display.get() or Display(what)
    step = Step(display, total, what)
    display.steps.append(step)
    display.refresh()
    try:
        yield step
    finally:
        display.steps.remove(step)
        display.refresh()


def steps(items: Iterable, total: int, what: str) -> Iterator[Any]:
    """Yield `items`, `total` in all, and show the progress of this task, called `what`."""
    with bar(total, what) as shown:
        for item in items:
            yield item
            shown.update(1)


def remark(text: str) -> None:
    """Add a remark to the next progress line of the current call."""
    display = _display.get()
    if display is not None:
        display.remark = text


class Step:
    """Task in a progress display, with its total number of steps, and how many are completed."""

    def __init__(self, display: "Display", total: int, what: str):
        self.display, self.total, self.what, self.done = display, total, what, 0

    def __str__(self) -> str:
        return f"{self.what}: {self.done} of {self.total}" if self.total > 1 else self.what

    def counting(self, function: Callable) -> Callable:
        """Return the function, wrapped so that each of its calls counts as a completed step."""

        def counted(*arguments):
            result = function(*arguments)
            self.update(1)
            return result

        return counted

    def update(self, n: int) -> None:
        with self.display.lock:
            self.done += n
            self.display.refresh()


class Display:
    """Progress display that shows nothing; base class of Line and Bars."""

    def __init__(self, call: str):
        self.call, self.remark = call, ""
        self.steps: list[Step] = []
        self.lock = threading.RLock()

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *error: object) -> None:
        """End the display."""

    def refresh(self) -> None:
        """Update the progress display."""

    def shown(self) -> list[Step]:
        """Return the tasks to show: the outermost and the innermost one that have several steps."""
        current = list(self.steps)
        several = [step for step in current if step.total > 1]
        return list(dict.fromkeys([*several[:1], *(several or current)[-1:]]))


class Line(Display):
    """Progress display: a line of text on a stream, written by a thread after `wait` seconds."""

    def __init__(self, call, wait, stream, clock=time.monotonic):
        super().__init__(call)
        self.stream, self.clock, self.width = stream, clock, 0
        self.start = clock()
        self.due = self.start + wait
        self.ended = threading.Event()
        self.terminal = False
        with contextlib.suppress(AttributeError, ValueError):
            self.terminal = stream.isatty()
        self.thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.ended.set()
        self.thread.join()
        if self.width:
            self._write("\n")

    def _follow(self):
        while not self.ended.wait(self.tell()):
            pass

    def tell(self):
        """Write the progress line if it is time; return the seconds until the next line."""
        now = self.clock()
        if now < self.due:
            return self.due - now
        done = ", ".join(map(str, self.shown()))
        text = f"lodim: {self.call}{done and f': {done}'} ({now - self.start:.0f} s)"
        if self.remark or not self.terminal:
            text, self.remark = text + (self.remark and f"; {self.remark}"), ""
            self._write("\r" * (self.width > 0) + text.ljust(self.width) + "\n")
            self.width = 0
        else:
            text = text[: shutil.get_terminal_size().columns - 1]
            self._write("\r" + text.ljust(self.width))
            self.width = len(text)
        self.due = now + (EVERY if self.terminal else EVERY_LINE)
        return self.due - now

    def _write(self, text):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # a stream may be closed
            self.stream.write(text)
            self.stream.flush()


class Bars(Display):
    """Progress display with bars of tqdm, one at a time."""

    def __init__(self, call, tqdm):
        super().__init__(call)
        self.tqdm, self.bar, self.of = tqdm, None, None

    def __exit__(self, *error):
        self._close()

    def refresh(self):
        with self.lock:
            step = next(iter(self.shown()), None)
            if step is not self.of:
                self._close()
                if step is not None and not step.done:
                    self.bar = self.tqdm(total=step.total, desc=f"{self.call}: {step.what}")
                self.of = step
            if self.bar is not None:
                self.bar.update(step.done - self.bar.n)
            if self.bar is not None and self.remark:
                self.bar.write(self.remark, file=sys.stderr)
                self.remark = ""

    def _close(self):
        if self.bar is not None:
            self.bar.leave = self.of.done >= self.bar.total
            self.bar.close()
        self.bar = None
