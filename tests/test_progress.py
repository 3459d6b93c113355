"""Progress of long calls, by a clock of the tests."""

import io
import sys

import numpy as np
import pytest

import lodim as ld
from lodim import progress
from lodim.fitting.argument_names import with_known_arguments
from lodim.fitting.fit_model import model_of, prepare
from lodim.progress import AFTER, EVERY, EVERY_LINE, Display, Line, bar, remark, steps


class Stream(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def line(monkeypatch):
    """A function that makes the Line of the calls of a test, whose clock reads `line.now`."""

    def make(terminal, wait=AFTER):
        made = Line("gbmap", wait, Stream(terminal), clock=lambda: make.now)
        progress._display.set(made)
        return made

    make.now = 100.0
    before = progress._display.set(None)
    yield make
    progress._display.reset(before)


def test_nothing_is_written_before_three_seconds(line):
    shown = line(terminal=True)
    line.now += 2.9
    assert shown.tell() == pytest.approx(AFTER - 2.9) and shown.stream.getvalue() == ""
    line.now += 0.1
    assert shown.tell() == EVERY
    assert shown.stream.getvalue() == "\rlodim: gbmap (3 s)"


def test_a_terminal_shows_one_line_that_changes(line):
    shown = line(terminal=True)
    with bar(90, "cross-validation") as part:
        part.update(12)
        line.now += 4.0
        shown.tell()
    with bar(1, "fit"):
        line.now += 1.0
        assert shown.tell() == EVERY - 1.0
        line.now += 1.0
        shown.tell()
    first, second = "lodim: gbmap: cross-validation: 12 of 90 (4 s)", "lodim: gbmap: fit (6 s)"
    assert shown.stream.getvalue() == f"\r{first}\r{second.ljust(len(first))}"


def test_elsewhere_lines_are_ten_seconds_apart(line):
    shown = line(terminal=False)
    for _ in range(24):
        line.now += 1.0
        shown.tell()
    seconds = int(AFTER), int(AFTER + EVERY_LINE), int(AFTER + 2 * EVERY_LINE)
    assert shown.stream.getvalue() == "".join(f"lodim: gbmap ({s} s)\n" for s in seconds)


def test_the_outermost_steps_and_the_innermost_are_shown(line):
    shown = line(terminal=False, wait=0.0)
    with bar(1, "fit"), bar(8, "views"), bar(3, "folds"):
        for _ in steps(range(2), 2, "evaluations"):
            shown.tell()
            line.now += EVERY_LINE
    texts = [f"lodim: gbmap: views: 0 of 8, evaluations: {k} of 2" for k in (0, 1)]
    assert [text.split(" (")[0] for text in shown.stream.getvalue().splitlines()] == texts


def test_a_remark_stays_on_the_first_line_of_a_terminal(line):
    shown = line(terminal=True)
    remark("1,000,000 rows")
    for seconds in (AFTER, EVERY):
        line.now += seconds
        shown.tell()
    assert shown.stream.getvalue() == "lodim: gbmap (3 s); 1,000,000 rows\n\rlodim: gbmap (5 s)"


def test_a_closed_stream_ends_the_line_and_not_the_call():
    stream = Stream(terminal=True)
    shown = Line("gbmap", 0.0, stream)
    stream.close()
    with shown:
        assert shown.tell() == pytest.approx(EVERY, abs=1.0)


def test_a_stream_that_can_only_be_written_to_is_no_terminal():
    class Plain:
        text = ""

        def write(self, text):
            self.text += text

    stream = Plain()
    with Line("gbmap", 0.0, stream) as shown:
        while not stream.text:
            shown.ended.wait(0.001)
    assert stream.text.startswith("lodim: gbmap (0 s)\n")


@with_known_arguments
def call(work, *, progress=None):
    return work()


@pytest.fixture
def without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)


def test_a_call_writes_at_once_if_it_is_asked_to(without_tqdm, monkeypatch):
    stream = Stream(terminal=True)
    monkeypatch.setattr(sys, "stderr", stream)

    def work():
        """End once the line has been written by its own thread."""
        display = progress._display.get()
        while not display.width:
            display.ended.wait(0.001)

    call(work, progress=True)
    assert stream.getvalue() == "\rlodim: call (0 s)\n"


def test_calls_within_a_call_show_nothing_of_their_own():
    def inner():
        return progress._display.get()

    def outer():
        own = progress._display.get()
        return own, call(inner, progress=True)

    for asked, kind in ((None, Line), (False, Display)):
        own, of_inner = call(outer, progress=asked)
        assert own is of_inner and type(own) is kind
    assert progress._display.get() is None


def test_what_progress_must_be():
    with pytest.raises(ld.ArgumentError, match=r"None \(after 3 s\), True or False, not 'yes'"):
        call(lambda: None, progress="yes")
    with pytest.raises(ld.ArgumentError, match="not 1"):
        call(lambda: None, progress=1)
    call(lambda: None, progress=np.bool_(False))


def test_many_rows_are_told_with_the_first_line(monkeypatch):
    told, iris = [], ld.data("iris")
    ripr = model_of(ld.ripr)
    monkeypatch.setattr(progress, "remark", told.append)
    monkeypatch.setattr(ripr, "many_rows", 149)
    arguments = {"lambda_": 1.0}
    prepare(ripr, "species ~ .", iris, arguments)
    prepare(ripr, "species ~ .", iris, arguments | {"sample": 149})
    assert told == [
        "150 rows x 4 features take minutes; sample=100_000 fits random rows in less time"
    ]


class Tqdm:
    """A bar as tqdm's, which keeps what became of it."""

    def __init__(self, total, desc):
        self.total, self.desc, self.n, self.leave, self.closed = total, desc, 0, True, False
        self.said = []

    def update(self, n):
        self.n += n

    def write(self, text, file):
        self.said.append(text)

    def close(self):
        self.closed = True


def test_one_bar_of_tqdm_at_a_time():
    bars = []

    def tqdm(**how):
        bars.append(Tqdm(**how))
        return bars[-1]

    with progress.Bars("ripr", tqdm) as shown:
        token = progress._display.set(shown)
        remark("many rows")
        with bar(1, "fit") as outer:
            for _ in steps(range(3), 3, "views"):
                with bar(2, "folds") as inner:
                    inner.update(2)
            outer.update(1)
        progress._display.reset(token)
    assert [(b.desc, b.n, b.total, b.leave) for b in bars] == [
        ("ripr: fit", 0, 1, False),
        ("ripr: views", 3, 3, True),
        ("ripr: fit", 1, 1, True),
    ]
    assert bars[0].said == ["many rows"] and all(b.closed for b in bars)


def test_calls_are_steps(line):
    line(terminal=False)
    with bar(2, "evaluations") as shown:
        double = shown.counting(lambda x: 2 * x)
        assert [double(1), double(2)] == [2, 4] and shown.done == 2
