"""Files of all models whose checksums are right and whose contents are not: refused at load."""

import copy
import functools
import operator
import re
import zipfile

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.fitting import storage as store


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    df["y"] = df["a"] + df["b"] ** 2 + 0.1 * rng.normal(size=60)
    df["k"] = np.where(df["a"] + 0.3 * rng.normal(size=60) > 0, "yes", "no")
    df["g"] = rng.choice(["r", "s", "t"], 60)
    return df


STATES = [
    "gbmap", "spline", "moments", "chosen", "glm", "proset", "melm", "ripr", "clusters",
    "costnet", "conformal",
]  # fmt: skip
OTHERS = ["several", "policy", "numbers"]  # not single fits that predict any rows


@pytest.fixture(scope="module")
def states(df, tmp_path_factory):
    """Kind and state of a fit of each model, as its file has them."""
    spline = "y ~ bs(a, df=4, lower_bound=-9, upper_bound=9) + cr(b, df=4) + C(g, Sum)"
    made = {
        "gbmap": ld.gbmap("k ~ a + b + g", df, m=2, lambda_=0.1, threads=1),
        "spline": ld.gbmap(spline, df, m=2, lambda_=0.1, threads=1),
        "moments": ld.gbmap("y ~ center(a) + scale(b) + bs(c, df=4)", df, m=1, lambda_=0.1),
        "chosen": ld.cv(ld.gbmap, "y ~ a", df, n_lambda=2, m=2, folds=2, threads=1).best,
        "glm": ld.glm("k ~ a + b + g", df),
        "proset": ld.proset("y ~ a + b", df, threads=1),
        "melm": ld.melm("k ~ a + b + c", df, gamma=1.0, n_starts=1, threads=1),
        "ripr": ld.ripr("k ~ a + b + c", df, threads=1),
        "clusters": ld.ripr("~ a + b + c", df, n_clusters=2, lambda_=0.2, threads=1),
        "costnet": ld.costnet("y ~ a + b", df, costs={"a": 1, "b": 2}, threads=1),
        "conformal": ld.conformal(ld.glm, "k ~ a", df, folds=2, by="class"),
        "several": ld.ripr("y + c ~ a + b", df, lambda_=0.1, threads=1),
        "policy": ld.acquire("k ~ a + b", df),
        "numbers": ld.acquire("y ~ a", df),
    }
    path = tmp_path_factory.mktemp("own") / "fit"
    out = {}
    for name, fit in made.items():
        fit.save(path)
        out[name] = store.read(path)
    assert list(out) == STATES + OTHERS
    return out


def write(states, name, keys, value, folder):
    """A file of a fit with one entry of its state changed."""
    kind, state = states[name]
    state = copy.deepcopy(state)
    inner = state
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value(inner[keys[-1]]) if callable(value) else value
    store.write(folder / "fit", kind, state)
    return folder / "fit"


def without_intercept(estimates):
    cut = {name: estimates[name][1:] for name in ("kept", "coef", "null")}
    cut["combination"] = np.zeros((len(cut["kept"]), 1))
    return estimates | cut | {"cov": estimates["cov"][1:, 1:]}


HUGE = 2**62
WILD = {"feature": "q", "least": -1, "greatest": 1.0, "middle": 0.0, "n": 1, "farthest": 1e9}
FORGERIES = [
    ("ripr", ("estimates", "views"), lambda v: v * 0 - 1, "no features"),
    ("ripr", ("estimates", "k"), 10**9, "k is 1000000000"),
    ("ripr", ("estimates", "assigned_view"), lambda v: v + HUGE, "assigned_view"),
    ("ripr", ("estimates", "weight"), lambda v: v * 0, "no row can be a neighbour"),
    ("ripr", ("estimates", "y"), lambda y: y + 0.5, r"y is 1\.5"),
    ("ripr", ("estimates", "kind"), 2, "estimates has fields missing or unknown"),
    ("ripr", ("settings", "method"), "assignment", "not the one that the response"),
    ("ripr", ("log", "objective"), lambda v: v[:0], "no round"),
    ("ripr", ("labels",), lambda v: v[1:], "labels has"),
    ("clusters", ("estimates", "centres"), lambda v: v * np.nan, "no place"),
    ("clusters", ("estimates", "centre_view"), lambda v: v * 0, "no cluster|dimensions|shape"),
    ("clusters", ("estimates", "volumes"), lambda v: v * 0, "volumes"),
    ("clusters", ("estimates", "n_samples"), lambda v: 10**6, "n_samples"),
    ("gbmap", ("design", "scale"), lambda v: v[:1], "design.scale has shape"),
    ("gbmap", ("design", "scale"), lambda v: -v, "design.scale is -"),
    ("gbmap", ("design", "mean"), lambda v: v * np.nan, "design.mean is nan"),
    ("gbmap", ("design", "names"), lambda v: v[::-1], "names of the features"),
    ("gbmap", ("design", "terms", 2, 0, "levels"), lambda v: v[:-1], "shares has shape"),
    ("gbmap", ("design", "terms", 2, 0, "kind"), 7, "kind is 7"),
    ("gbmap", ("design", "response", "levels"), ["no", "no"], "a level twice"),
    ("gbmap", ("design", "family"), "gaussian", "levels"),
    ("gbmap", ("estimates", "theta"), lambda v: v.astype("f4"), "float32"),
    ("gbmap", ("estimates", "theta"), lambda v: v + 1e300, "theta is"),
    ("gbmap", ("estimates", "target"), lambda v: v + 5, "target is 5"),
    ("gbmap", ("estimates", "stage"), lambda v: v + 1, "no first boost"),
    ("gbmap", ("log",), lambda v: {k: v[k] for k in v if k != "grad_norm"}, "log has"),
    ("gbmap", ("reference", "y"), lambda v: v + 7, "reference.y"),
    ("gbmap", ("settings", "m"), 10**12, "m must be"),
    ("gbmap", ("settings", "lambda_"), None, "settings.lambda_ is None"),
    ("gbmap", ("arguments",), {}, "arguments are not those"),
    ("gbmap", ("call",), 3, "call is a int"),
    ("gbmap", ("n",), True, "n is True"),
    ("spline", ("design", "terms", 0, 0, "states", 0, 1, "_degree"), 25, "_degree is 25"),
    ("spline", ("design", "terms", 0, 0, "states", 0, 1, "_all_knots"), lambda v: v[:5], "knots"),
    ("spline", ("design", "terms", 1, 0, "states", 0, 0), "cc", "_name|cc"),
    ("spline", ("design", "terms", 2, 0, "matrix"), lambda v: v[:, :1], "matrix has shape"),
    ("spline", ("design", "terms", 0, 0, "name"), "__import__('os')", "cannot stand"),
    ("gbmap", ("arguments", "sample"), [1], "arguments.sample is"),
    ("glm", ("arguments", "sample"), "auto", "arguments.sample is 'auto'"),
    ("glm", ("arguments", "weights"), {}, "arguments.weights is a dict"),
    ("moments", ("design", "terms", 0, 0, "states"), [], "pop from empty list"),
    ("moments", ("design", "terms", 1, 0, "states", 0, 0), "standardize", "other columns"),
    ("spline", ("design", "terms", 0, 0, "width"), 5, "makes 4 columns .*, not 5"),
    ("chosen", ("selection", "lambda_", 0), "x", "selection.lambda_"),
    ("chosen", ("selection", "mean"), lambda v: v[1:], "same length"),
    ("proset", ("estimates", "features"), lambda v: v + HUGE, "features"),
    ("proset", ("estimates", "x"), lambda v: v[:, :0], "x has shape"),
    ("melm", ("estimates", "rule", "densities", "start"), lambda v: v + 1, "rows of the classes"),
    ("melm", ("estimates", "rule", "rows", "code"), lambda v: v * 0, "none of some class"),
    ("melm", ("estimates", "V"), lambda v: v.T, "V has shape|shape"),
    ("melm", ("measures",), {}, "measures has"),
    ("melm", ("estimates", "rule", "other"), {}, "rule.other"),
    ("costnet", ("estimates", "frontier", "coef"), lambda v: v[:-1], "frontier.coef has shape"),
    ("costnet", ("selection", "mean"), lambda v: ["x"] * len(v), "selection.mean"),
    ("costnet", ("chosen",), {"budget": [1.0], "a": []}, "as many numbers|lacks"),
    ("costnet", ("chosen",), {"budget": ["x"]}, "not a number"),
    ("costnet", ("chosen",), ["budget"], "chosen is a list"),
    ("costnet", ("position",), [True, 10**6], "position.* is 1000000"),
    ("costnet", ("settings", "network", "parents", 0), [0], "has parents"),
    ("costnet", ("settings", "network", "base"), lambda v: v - 1, "base"),
    ("gbmap", ("design", "terms", 2, 0, "labels"), ["r", "s", "x"], "labels"),
    ("gbmap", ("design", "terms", 2, 0, "levels"), [2**70, "s", "t"], "beyond"),
    ("gbmap", ("design", "response", "levels"), ["no", "or", "yes"], "3 levels, not 2"),
    ("gbmap", ("design", "response", "called"), True, "no call"),
    (
        "gbmap",
        ("design", "response"),
        {"name": "a + b", "levels": None, "called": True},
        "not a call",
    ),
    ("gbmap", ("design", "family"), "none", "does not fit the response"),
    ("gbmap", ("design", "offset"), "a", "offset that was not given"),
    ("gbmap", ("design", "fills"), [], "nothing that stands for"),
    ("gbmap", ("design", "fills", 0, "value"), 1e300, "mean of a"),
    ("gbmap", ("design", "parameter"), 3.0, "does not fit family"),
    ("gbmap", ("design", "wild"), [WILD], "limits are of a feature"),
    ("gbmap", ("design", "wild"), [WILD | {"feature": "a", "farthest": 0.5}], "farthest"),
    ("gbmap", ("design", "names"), 3, "names is a int, not a list"),
    ("gbmap", ("call",), "\ud800", "halves of letters"),
    ("gbmap", ("arguments", "control"), {"max_iter": 1e200}, "too large"),
    ("gbmap", ("arguments", "control"), {"max_iter": np.ones(2)}, "not text or a number"),
    ("gbmap", ("reference",), lambda rows: {k: v[:0] for k, v in rows.items()}, "no rows"),
    ("gbmap", ("reference", "y"), lambda v: v * 0 + 0.5, "no code of 2 classes"),
    ("gbmap", ("settings", "m"), 1, "the last boost 2"),
    ("glm", ("estimates",), without_intercept, "lack the intercept"),
    ("spline", ("design", "terms", 2, 0, "name"), "center(g)", "makes no levels"),
    ("spline", ("design", "terms", 1, 0, "states", 0, 1, "_cyclic"), True, "another kind"),
    ("chosen", ("selection",), lambda s: {k: v for k, v in s.items() if k != "se"}, "lacks"),
    ("melm", ("log",), lambda log: {k: v[:0] for k, v in log.items()}, "no start"),
    ("melm", ("settings", "gamma"), None, "gamma is None"),
    ("ripr", ("record", "blind"), 10**6, "more are without an answer"),
    ("costnet", ("settings", "network", "series"), lambda v: v * 0, "series of alternatives"),
    ("policy", ("y",), lambda y: y + 0.5, "y has codes of no class"),
    ("policy", ("mixture", "label"), lambda v: v + 7, "other classes"),
    ("numbers", ("mixture", "cross"), lambda v: v[:0], "covariances"),
    ("policy", ("network", "names"), ["a", "q"], "cannot be bought"),
    ("conformal", ("fits", 0, "design", "response", "levels"), ["no", "or"], "one model"),
    ("conformal", ("says", "score"), "absolute", "not one for the response"),
    ("conformal", ("guarantee", "by"), None, "not of the classes"),
    ("conformal", ("table",), lambda t: t | {"more": t["level"]}, "table has columns"),
    ("conformal", ("table", "size"), lambda v: ["x"] * len(v), "no numbers"),
    ("conformal", ("held_out",), lambda h: {k: v[:0] for k, v in h.items()}, "no row was held"),
    ("several", ("fits",), {}, "names of their responses"),
    ("several", ("fits", "c", "estimates", "views"), lambda v: v[:, ::-1], "."),
]


@pytest.mark.parametrize("name, keys, value, words", FORGERIES)
def test_forgeries_are_refused(states, tmp_path, name, keys, value, words):
    with pytest.raises(ld.StoreError, match=words):
        ld.load(write(states, name, keys, value, tmp_path))


def arrays(value, at=()):
    """Where the arrays of a state are."""
    if isinstance(value, np.ndarray):
        yield at
    elif isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from arrays(one, (*at, key))


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["gbmap", "spline", "moments", "proset", "melm", "ripr", "clusters", "costnet"]
)
@pytest.mark.parametrize(
    "change",
    [lambda v: v[:-1], lambda v: v[None], lambda v: v.astype("c16"), lambda v: v.astype(">f4")],
    ids=["shorter", "deeper", "complex", "bytes"],
)
def test_every_array_has_its_shape_and_type(states, tmp_path, name, change):
    free = {"flat", "objective"}  # of any length
    for keys in arrays(states[name][1]):
        own = functools.reduce(operator.getitem, keys, states[name][1])
        if free.isdisjoint(keys) and (change(own).dtype, change(own).shape) != (
            own.dtype, own.shape
        ):  # fmt: skip
            path = write(states, name, keys, change, tmp_path)
            with pytest.raises(ld.StoreError):
                ld.load(path)


FREE = {"selection", "chosen", "control", "costs"}  # dicts whose keys follow from the call


def keys_of(value, at=()):
    """Yield the keys that lead to each entry of the dicts of a state."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, dict):
                yield (*at, key)
            if key not in FREE:
                yield from keys_of(one, (*at, key))


def without(value, keys):
    """Return a state without one of its entries."""
    key, *rest = keys
    if not rest:
        return {k: v for k, v in value.items() if k != key}
    inner = without(value[key], rest)
    if isinstance(value, list):
        return [*value[:key], inner, *value[key + 1 :]]
    return value | {key: inner}


@pytest.mark.parametrize("name", STATES)
def test_every_key_is_needed(states, monkeypatch, name):
    kind, state = states[name]
    for keys in keys_of(state):
        monkeypatch.setattr(store, "read", lambda path, keys=keys: (kind, without(state, keys)))
        with pytest.raises(ld.StoreError, match="does not contain a valid"):
            ld.load("file")
            pytest.fail(f"{kind} is read without {keys}")


def test_a_missing_key_is_named(states, monkeypatch):
    kind, state = states["gbmap"]
    monkeypatch.setattr(store, "read", lambda path: (kind, without(state, ("estimates",))))
    with pytest.raises(ld.StoreError, match="fields missing or unknown: estimates"):
        ld.load("file")
    monkeypatch.setattr(store, "read", lambda path: (kind, without(state, ("settings", "beta"))))
    with pytest.raises(ld.StoreError, match="settings has fields missing or unknown: beta"):
        ld.load("file")


def test_edits_of_members_are_refused(states, df, tmp_path):
    """Whole zips with checksums of zip's own that fit, and not those of the file."""
    path = write(states, "gbmap", ("n",), 60, tmp_path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["state.json"] = re.sub(rb'"n":60', b'"n":61', members["state.json"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ld.StoreError, match="edited"):
        ld.load(path)


def test_own_files_are_read(states, df, tmp_path):
    for name in STATES:
        store.write(tmp_path / "fit", *states[name])
        fit = ld.load(tmp_path / "fit")
        assert repr(fit) and len(fit.predict(df)) == len(df)
