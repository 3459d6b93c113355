"""Progress bars: shown where `progress=True` asked for them, the outermost alone."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from lodim.errors import MissingExtraError

QUIET, ASKED, SHOWN = range(3)
_state: ContextVar[int] = ContextVar("progress", default=QUIET)


@contextmanager
def showing(asked: bool) -> Iterator[None]:
    """What runs within shows its outermost bar, where that is asked for here or further out."""
    before = _state.set(max(_state.get(), ASKED if asked else QUIET))
    try:
        yield
    finally:
        _state.reset(before)


def bar(total: int, what: str) -> AbstractContextManager:
    """A bar with `update(n)`; an invisible one where none is asked for, or one is shown already."""
    shows = _state.get() == ASKED
    return _shown(total, what) if shows else nullcontext(_NoBar())


def steps(items: Iterable, total: int, what: str) -> Iterator[Any]:
    """The items, each a step of a bar once what is done with it has ended."""
    with bar(total, what) as shown:
        for item in items:
            yield item
            shown.update(1)


@contextmanager
def _shown(total, what):
    """A bar of tqdm, on standard error; what runs within shows none."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        hint = "progress=True needs tqdm: pip install 'lodim[progress]'"
        raise MissingExtraError(hint) from error
    before = _state.set(SHOWN)
    try:
        with tqdm(total=total, desc=what) as shown:
            yield shown
    finally:
        _state.reset(before)


class _NoBar:
    def update(self, n):
        """Show nothing."""
