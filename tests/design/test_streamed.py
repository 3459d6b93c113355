"""A design learnt part by part is that of the frame in memory, bit for bit."""

import os
import pickle
import threading
import tracemalloc
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim import forms
from lodim.design import chunks, features
from lodim.design import terms as design_terms
from lodim.design.chunks import bare_table, batch_reader, part_task, spans_of
from lodim.design.design import Design
from lodim.design.features import apply_to_chunk
from lodim.design.reading import Reading, read_source_rows
from lodim.design.rows import RowInputs
from lodim.errors import ArgumentError, DataError
from lodim.sources import Chunk, Source

PART = 1024


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a frame as a piece of a source, in chunks of `step` rows."""

    frame: pd.DataFrame
    place: str
    step: int

    n = None

    def read(self, names):
        for first in range(0, max(1, len(self.frame)), self.step):
            rows = self.frame.iloc[first : first + self.step]
            yield Chunk(rows[list(names)].reset_index(drop=True), first, self.place)


@dataclass(frozen=True, eq=False)
class Counted(Source):
    """A source that counts its passes, and what was read, and may change between passes."""

    seen: tuple = ()

    def select(self, names):
        return self

    def check_unchanged(self):
        self.seen[0].append("check")


def source_of(frame, cuts=(), step=1000):
    edges = [0, *cuts, len(frame)]
    pieces = [
        Rows(frame.iloc[a:b], f"file-{k}.csv", step) for k, (a, b) in enumerate(pairwise(edges))
    ]
    return Source(tuple(frame.columns), tuple(pieces), "pandas")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(chunks, "ROWS_PER_CHUNK", PART)
    monkeypatch.setattr(
        "lodim.design.design.read_source",
        lambda data, check: data if isinstance(data, Source) else None,
    )


@pytest.fixture(scope="module")
def frame():
    rng, n = np.random.default_rng(0), 3300
    df = pd.DataFrame(
        {
            "a": rng.normal(size=n), "b": rng.gamma(2, size=n) + 0.1, "k": rng.integers(0, 5, n),
            "s": rng.choice(list("xyz"), n), "f": rng.random(n).astype("float32"),
            "t": rng.random(n) > 0.5, "w": rng.integers(0, 3, n) * 0.7, "e": rng.normal(size=n),
            "g": rng.choice(["p", "q", "r", "s"], n), "i": rng.integers(0, 9, n),
        }
    )  # fmt: skip
    levels = ["lo", "mid", "hi", "never"]
    df["o"] = pd.Categorical(rng.choice(levels[:3], n), levels, ordered=True)
    df["u"] = pd.array(rng.integers(0, 9, n), dtype="Int64")
    df["v"] = pd.array(rng.random(n) > 0.3, dtype="boolean")
    for name in ("b", "s", "u", "v"):
        df.loc[rng.random(n) < 0.05, name] = None
    df.loc[n - 1, "s"] = "last"
    df["y"] = df.a + rng.normal(size=n)
    df["c"] = rng.choice(["no", "yes"], n)
    df["m"] = rng.integers(0, 3, n)
    df.loc[rng.random(n) < 0.03, "y"] = None
    return df


def same(one, other, what):
    """Raise unless two records have the same types, shapes and bits."""
    assert type(one) is type(other), what
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.shape == other.shape, what
        assert one.tobytes() == other.tobytes(), what
    elif isinstance(one, tuple | list):
        assert len(one) == len(other), what
        for i, pair in enumerate(zip(one, other, strict=True)):
            same(*pair, (what, i))
    elif isinstance(one, dict):
        assert list(one) == list(other), what
        for key in one:
            same(one[key], other[key], (what, key))
    else:
        assert one == other or one != one, what


def same_learnt(frame, source, formula, **given):
    design, batch = Design.learn(formula, frame, **given)
    learnt, streamed = Design.learn(formula, source, **given)
    same(forms.write(design), forms.write(learnt), formula)
    for key in ("X", "y", "weights", "offset", "rows", "order", "clusters", "groups"):
        same(getattr(batch, key), getattr(streamed, key), key)
    assert streamed.streamed and not batch.streamed
    assert streamed.index.equals(pd.RangeIndex(len(frame)))
    return learnt, streamed


FORMULAS = (
    "y ~ .",
    "y ~ a*s + C(k) + np.log(b)",
    "y ~ cr(a, df=5) + te(cr(a, df=3), cr(f, df=3)) + center(a) + scale(b):s + standardize(f)",
    "y ~ bs(e, df=5, lower_bound=-9, upper_bound=9):k",
    "y ~ o + t + u + v + C(u) + C(I(a > 0.3)) + C(k, Sum) + o:s",
    "c ~ a + s + t",
    "np.log(b) ~ a + s",
    "~ a + b + s",
)
BESIDE = (
    {},
    {"inputs": RowInputs(weights="w"), "missing": "indicator"},
    {"inputs": RowInputs(offset="e", clusters="g", groups="g", order="b"), "dtype": "float32"},
    {"reference_levels": True, "standardize": False},
    {"missing": "keep"},
)


@pytest.mark.long
@pytest.mark.parametrize("formula", FORMULAS)
def test_a_source_has_the_bits_of_the_frame(frame, formula):
    ways = [([1, 65, 66, 1000], 100), ([0, 0, len(frame) - 1], PART + 1), ([], 64)]
    for k, given in enumerate(BESIDE):
        same_learnt(frame, source_of(frame, *ways[k % 3]), formula, **given)


@pytest.mark.long
def test_wild_values_are_limited_alike(frame):
    far = frame.copy()
    far.loc[[7, 2900], "a"], far.loc[1500, "b"], far.loc[3000, "f"] = [1e12, -3e9], 1e8, 1e6
    source = source_of(far, [1, 65, 1000], 100)
    for given in BESIDE:
        design = same_learnt(far, source, "y ~ a*s + np.log(b) + b + I(f ** 2)", **given)[0]
        assert {"a", "b", "I(f ** 2)"} <= {one.feature for one in design.wild}


@pytest.mark.long
def test_pieces_of_one_row(frame):
    few = frame[:70].drop(columns="o")
    same_learnt(few, source_of(few, range(1, 70)), "y ~ a + s + cr(b, df=3)", missing="indicator")


def test_the_family_and_several_responses(frame):
    source = source_of(frame, [1500])
    assert same_learnt(frame, source, "m ~ a + o", family="multinomial")[0].family == "multinomial"
    assert same_learnt(frame, source, "v ~ a", missing="keep")[0].levels == (False, True)
    assert same_learnt(frame, source, "m ~ a", family="poisson")[0].levels is None
    same_learnt(frame, source, "y + c ~ a + s", which=1)


def test_arrays_of_all_rows_are_taken(frame):
    weights, offset = np.arange(len(frame)) % 4 * 1.0, frame.e.to_numpy()
    given = {"inputs": RowInputs(weights=weights, offset=offset, groups=frame.g.to_numpy())}
    same_learnt(frame, source_of(frame, [10, 1300]), "y ~ a + s", **given)
    same_learnt(
        frame, source_of(frame, [10]), "y ~ a", inputs=RowInputs(weights=pd.Series(weights))
    )
    for wrong in (weights[:100], np.r_[weights, 1.0]):
        with pytest.raises(DataError, match=r"weights .*must have one"):
            Design.learn("y ~ a", source_of(frame, [10]), RowInputs(weights=wrong))


def test_weights_beyond_the_range_of_sums(frame):
    weights = np.where(np.arange(len(frame)) % 2, 1e-150, 3e-151)
    same_learnt(
        frame,
        source_of(frame, [1300]),
        "y ~ a + s",
        inputs=RowInputs(weights=weights),
        missing="indicator",
    )


def test_how_often_a_source_is_read(frame):
    passes = []

    def learn(formula, **given):
        source = Counted(tuple(frame.columns), source_of(frame, [7]).pieces, "pandas", seen=([],))
        Design.learn(formula, source, **given)
        passes.append(len(source.seen[0]) // 2)

    learn("y ~ a + f + k")
    learn("y ~ a + s")
    learn("y ~ a + bs(f, df=4)")
    assert passes == [2, 3, 4]


def test_only_the_columns_of_the_formula_are_read(frame):
    class Picky(Rows):
        def read(self, names):
            assert set(names) <= {"y", "a", "s", "w"}
            yield from super().read(names)

    source = Source(tuple(frame.columns), (Picky(frame, "x.csv", 500),), "pandas")
    Design.learn("y ~ a + s", source, RowInputs(weights="w"))


def test_splines_of_many_rows_are_learnt_from_a_sample(frame, monkeypatch):
    monkeypatch.setattr(design_terms, "SAMPLE", 500)
    formula = "y ~ bs(a, df=5) + cr(b, df=4) + scale(f):s"
    learnt, _ = same_learnt(frame, source_of(frame, [1, 900]), formula)
    assert 500 < learnt.n_sampled <= 506  # and the rows of the least and the greatest values
    weighted = same_learnt(
        frame, source_of(frame), "y ~ cr(b, df=4) + scale(f):s", inputs=RowInputs(weights="w")
    )
    assert 500 < weighted[0].n_sampled <= 504
    assert same_learnt(frame, source_of(frame), "y ~ a + s")[0].n_sampled == 0
    knots = dict(learnt.terms[0][0].states)["bs"]["_all_knots"]
    used = frame.dropna(subset=["y", "b", "s"]).a
    assert (knots[0], knots[-1]) == (used.min(), used.max())
    assert forms.read(Design, forms.write(learnt)).n_sampled == learnt.n_sampled
    fit = ld.glm(formula, source_of(frame))
    assert f"from {fit.design.n_sampled:,} rows" in str(fit.summary())


def test_a_sample_of_rows_is_the_same_from_everywhere(frame):
    given = {
        "inputs": RowInputs(weights=frame.w.to_numpy() + 1.0, groups="g"),
        "reading": Reading(sample=400, seed=3),
    }
    design, batch = Design.learn("y ~ a + s", frame, **given)
    learnt, drawn = Design.learn("y ~ a + s", source_of(frame, [5, 77]), **given)
    same(forms.write(design), forms.write(learnt), "sample")
    for key in ("X", "y", "weights", "groups", "rows"):
        same(getattr(batch, key), getattr(drawn, key), key)
    assert len(drawn.index) == 400 and drawn.index.equals(batch.index) and not drawn.streamed
    assert Design.learn("y ~ a", frame, reading=Reading(sample=10**6))[1].n == frame.y.notna().sum()
    with pytest.raises(ArgumentError, match="sample must be an integer from 1"):
        Design.learn("y ~ a", frame, reading=Reading(sample=0))


BAD = {
    "y ~ a + n": (lambda df: df.assign(n=np.where(df.index < 900, np.arange(len(df)), "text")),
                  "column 'n' holds numbers in one part of the data and .* in another"),
    "y ~ z": (lambda df: df.assign(z=np.where(df.index == 1005, np.inf, df.a)),
              "column 'z' must be finite; it is infinite in row 105 of file-1.csv"),
    "y ~ np.log(z)": (lambda df: df.assign(z=np.where(df.index == 1005, 0.0, 1.0), y=df.e),
                      "is -inf in row 105 of file-1.csv, where z = 0.0"),
    "y ~ d": (lambda df: df.assign(d=pd.Timestamp("2026-01-01")), "column 'd' has dates"),
    "y ~ id": (lambda df: df.assign(id=[f"row {i}" for i in range(len(df))]),
               "column 'id' seems to be row names: 3,208 of 3,208 rows have a level that no other"),
    "y ~ a + gone": (lambda df: df, "there is no column 'gone'"),
    "one ~ a": (lambda df: df.assign(one="same"), "has one class only"),
    "y ~ none": (lambda df: df.assign(none=None), "no rows are left: 3300 of 3300 rows"),
    "y ~ a + empty": (lambda df: df.assign(empty=np.nan), "leave 'empty' out of the formula"),
    "y ~ q": (lambda df: df.assign(q=(df.a.round(1) + 0.05).astype(str)), "was read as text"),
}  # fmt: skip


@pytest.mark.parametrize("formula", BAD)
def test_what_is_wrong_is_said_with_the_place(frame, formula):
    make, message = BAD[formula]
    made = make(frame.copy())
    pieces = [Rows(made[:900].infer_objects(), "file-0.csv", 400)]
    if formula.endswith("+ n"):
        pieces[0] = Rows(made[:900].astype({"n": float}), "file-0.csv", 400)
    source = Source(tuple(made.columns), (*pieces, Rows(made[900:], "file-1.csv", 400)), "pandas")
    with pytest.raises((DataError, ld.LodimError), match=message):
        Design.learn(formula, source)


def test_a_column_that_is_missing_in_one_file_and_one_class_in_the_first(frame):
    df = frame.assign(b=np.where(frame.index < 1200, np.nan, frame.b))
    df["s"] = df.s.where(df.index >= 1200, None)
    df["c"] = np.where(df.index < 1300, "no", df.c)
    for missing in ("drop", "indicator", "keep"):
        learnt, _ = same_learnt(df, source_of(df, [600, 1200]), "c ~ b + s", missing=missing)
        assert learnt.levels == ("no", "yes")


def test_too_many_levels_end_the_pass_early(monkeypatch, frame):
    monkeypatch.setattr("lodim.design.summaries.MOST_LEVELS", 2000)
    df = frame.assign(id=[f"row {i}" for i in range(len(frame))])
    last = Rows(df[:0], "never read", 1)
    broken = Source(tuple(df.columns), (*source_of(df).pieces, last), "pandas")
    with pytest.raises(DataError, match="column 'id' has over 2,000 levels"):
        Design.learn("y ~ id", broken)


def test_a_source_that_changes_between_passes_is_noticed(frame):
    reads, kept = [], []

    class Shrinks(Rows):
        def read(self, names):
            reads.append(1)
            rows = self.frame if len(reads) == 1 else self.frame[: kept[0]]
            yield from Rows(rows, self.place, self.step).read(names)

    for count in (3000, 10):
        reads, kept = [], [count]
        source = Source(tuple(frame.columns), (Shrinks(frame, "x.csv", 500),), "pandas")
        with pytest.raises(DataError, match="number of rows must not change"):
            Design.learn("y ~ a + s", source)


@pytest.mark.parametrize("error", [DataError("gone"), KeyboardInterrupt()], ids=type)
def test_nothing_is_left_behind_where_a_pass_ends_early(frame, tmp_path, error):
    class Breaks(Rows):
        def read(self, names):
            reads.append(1)
            for k, chunk in enumerate(super().read(names)):
                if len(reads) == 3 and k == 2:
                    raise error
                yield chunk

    reads, before = [], threading.active_count()
    source = Source(tuple(frame.columns), (Breaks(frame, "x.csv", 500),), "pandas")
    with pytest.raises(type(error)):
        Design.learn("y ~ a + s", source, reading=Reading(scratch=tmp_path))
    assert len(reads) == 3 and not os.listdir(tmp_path)
    assert threading.active_count() == before


@pytest.mark.long
def test_parts_can_be_made_by_themselves_in_any_order(frame):
    given = {"inputs": RowInputs(weights="w", offset="e"), "missing": "indicator"}
    source, formula = source_of(frame, [1, 65, 1100]), "y ~ a + s + cr(b, df=4) + o"
    design, batch = Design.learn(formula, source, **given)
    request = design_terms.column_request([[("s", None)], [("b", None)]])
    learnt = read_source_rows(source, request, ["y"], RowInputs("w", "e"), "indicator").parts
    make = pickle.loads(pickle.dumps(batch_reader(design, learnt, RowInputs("w", "e"))))
    for k in reversed(range(learnt.n // PART + 1)):
        here, tiles = slice(PART * k, PART * (k + 1)), slice(PART * k // 64, PART * (k + 1) // 64)
        part = make(k)
        for key in ("y", "weights", "offset"):
            same(getattr(part, key), getattr(batch, key)[here].copy(), key)
        same(part.X, batch.X[tiles].copy(), "X")
    wanted = np.ones(len(design.names), bool)
    moments = partial(features.learn_moments, wanted=wanted, limits={})
    work = partial(
        apply_to_chunk, terms=design.terms, fills=design.fills, missing="drop", work=moments
    )
    spans, names = spans_of(learnt.table.rows, learnt.n), design.features
    each = [(learnt.store, span, bare_table(learnt.table, span), work, names) for span in spans]
    found = [part_task(*pickle.loads(pickle.dumps(task))) for task in each]
    same(found, learnt.map(work, design.features), "moments")


@pytest.mark.long
def test_memory_holds_a_few_parts_beside_what_is_of_each_row(tmp_path):
    n, p, step = 40 * PART, 30, PART
    block = np.random.default_rng(1).normal(size=(step, p))

    class Made(Rows):
        def read(self, names):
            for first in range(0, n, step):
                values = np.roll(block, first // step, axis=1)
                data = pd.DataFrame(values, columns=[f"x{k}" for k in range(p)])
                data["s"] = np.where(values[:, 0] > 0, "up", "down")
                yield Chunk(data[list(names)], first, self.place)

    names = (*(f"x{k}" for k in range(p)), "s")
    source = Source(names, (Made(None, "made", step),), "pandas")
    Design.learn("x0 ~ .", source, reading=Reading(scratch=str(tmp_path)))
    tracemalloc.start()
    _, batch = Design.learn("x0 ~ .", source, reading=Reading(scratch=str(tmp_path)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    part = 8 * PART * p
    assert batch.X.nbytes == 40 * part and batch.n == n
    assert peak < 5 * part + 50 * n  # of 40 parts
