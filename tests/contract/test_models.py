"""The contract that every model meets, whatever its maths."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lodim as ld
from lodim.fitting import storage as store

MODELS = [ld.gbmap, ld.proset, ld.costnet, ld.melm, ld.ripr]
CHEAP = {
    ld.gbmap: {"m": 3, "lambda_": 0.1, "threads": 1},
    ld.proset: {"n_batches": 2, "threads": 1},
    ld.costnet: {"budget": 3, "threads": 1},
    ld.melm: {"gamma": 1.0, "n_starts": 3, "threads": 1},
    ld.ripr: {"threads": 1},
}
FEW_STAGES = {
    ld.gbmap: {"m": 2},
    ld.proset: {"n_batches": 2},
    ld.costnet: {},
    ld.melm: {"n_starts": 3, "k": 1},
    ld.ripr: {},
}
PENALTY = {
    ld.gbmap: "lambda_", ld.proset: "lambda_v", ld.costnet: "lambda_", ld.melm: "gamma",
    ld.ripr: "lambda_",
}  # fmt: skip
PENALTIES = {m: (0.2, 1.0, 4.0) if m is ld.melm else (0.0, 1e-3, 1.0) for m in MODELS}
CONTROL = {m: {} if m is ld.ripr else {"max_iter": 60} for m in MODELS}
OPEN = {
    ld.gbmap: {"control": {"max_iter": 30, "max_stages": 2}},
    ld.proset: {
        "n_batches": None, "lambda_v": None, "control": {"max_iter": 30, "max_stages": 2},
    },
    ld.costnet: {"control": {"max_iter": 30}},
    ld.melm: {"n_starts": 3, "control": {"max_iter": 30}},
    ld.ripr: {},
}  # fmt: skip
CLASSES_ONLY = [ld.melm]
WITHOUT_OFFSET = [ld.melm, ld.ripr]
WITHOUT_RESPONSE = [ld.melm, ld.ripr]  # take a formula without a left side
PARTIAL = [ld.ripr]  # rows with missing values are used as far as they go
LACKS = {ld.ripr: ("offset", "dtype")}  # arguments that others have
KINDS = {
    "gaussian": lambda f: 10 * f,
    "text": lambda f: np.where(f > 0, "sick", "healthy"),
    "bool": lambda f: f > 0,
    "0/1": lambda f: (f > 0).astype(int),
    "-1/1": lambda f: np.where(f > 0, 1.0, -1.0),
    "multinomial": lambda f: np.array(["low", "mid", "high"])[(f > -0.5).astype(int) + (f > 0.7)],
}
LEVELS = {
    "gaussian": None, "text": ("healthy", "sick"), "bool": (False, True), "0/1": (0, 1),
    "-1/1": (-1.0, 1.0), "multinomial": ("high", "low", "mid"),
}  # fmt: skip
N = 80


def frame(kind):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(
        {
            "age": rng.normal(50, 9, N),
            "dose mg": rng.gamma(2, 3, N),
            "arm": rng.choice(list("AB"), N),
        },
        index=pd.Index(range(1000, 1000 + N), name="patient"),
    )
    f = (df["age"] - 50) / 9 + (df["arm"] == "B") + 0.5 * rng.normal(size=N)
    df["answer"] = KINDS[kind](f.to_numpy())
    df["w"], df["o"] = rng.random(N) + 0.5, 0.1 * rng.normal(size=N)
    df.loc[1003, "age"] = np.nan
    df.loc[1009, "arm"] = None
    return df


FORMULA = "answer ~ . - w - o"
MISSING = [1003, 1009]
TAKES = {m: [k for k in KINDS if k != "gaussian" or m not in CLASSES_ONLY] for m in MODELS}


def frame_of(model, kind):
    """The frame; for a model that uses what is there, rows that miss a feature miss them all."""
    df = frame(kind)
    if model in PARTIAL:
        df.loc[MISSING, ["age", "dose mg", "arm"]] = None
    return df


def used(model):
    """How many rows of the frame a fit counts, and what its print says of the others."""
    return (N, "without any complete view: 2 ") if model in PARTIAL else (N - 2, "(2 dropped")


cases = pytest.mark.parametrize(
    "model, kind", [(m, k) for m in MODELS for k in TAKES[m]],
    ids=lambda v: getattr(v, "__name__", v),
)  # fmt: skip
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
_fits = {}


def fit_of(model, kind):
    if (model, kind) not in _fits:
        _fits[model, kind] = model(FORMULA, frame_of(model, kind), **CHEAP[model])
    return _fits[model, kind]


LONG = {
    ld.gbmap: ("c ~ .", {"m": 32, "lambda_": 0.1, "n_starts": 1}),
    ld.proset: ("c ~ .", {"lambda_v": 1e-5}),
    ld.costnet: ("c ~ .", {"budget": 45, "rules": "greedy", "control": {"criterion": "deviance"}}),
    ld.melm: ("c ~ .", {"gamma": 1.0, "n_starts": 12}),
    ld.ripr: ("~ . - c", {"n_clusters": 40, "lambda_": 0.1}),
}


@models
def test_long_tables_of_a_summary_are_cut_unless_it_is_full(model, monkeypatch):
    monkeypatch.setattr("lodim.models.proset.report.MOST_FEATURES", 3)  # it hardly uses more
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(150, 45))).add_prefix("v")
    df["c"] = np.where(df.to_numpy().sum(axis=1) + 6 * rng.normal(size=150) > 0, "a", "b")
    formula, arguments = LONG[model]
    fit = model(formula, df, threads=1, **arguments)
    short, full = fit.summary(), fit.summary(full=True)
    said = [" ".join(str(report).split()) for report in (short, full)]
    assert "are left out; " in said[0] and "are left out; " not in said[1]
    assert len(said[0]) < len(said[1])
    assert fit._repr_html_() == short.as_html() != full.as_html()


@cases
def test_print_and_summary(model, kind):
    fit = fit_of(model, kind)
    text, report = str(fit), fit.summary()
    assert f'{model.__name__}("{FORMULA}", data=df' in text
    n, rest = used(model)
    assert fit.family.name in text and f"Rows: {n}" in text and rest in text.lower()
    assert text == repr(fit)
    for out in (str(report), report.as_html(), report.as_latex()):
        for word in ("answer", fit.family.name, *fit._reader.features):
            assert word in out.replace("\\", ""), word
    assert max(map(len, text.splitlines())) <= 100
    assert max(map(len, str(report).splitlines())) <= 100


@cases
def test_levels_and_family(model, kind):
    fit = fit_of(model, kind)
    assert fit.levels == LEVELS[kind]
    family = {"gaussian": "gaussian", "multinomial": "multinomial"}.get(kind, "binomial")
    assert fit.family.name == family == fit.glance()["family"][0]


@cases
def test_predictions_have_the_rows_of_the_data(model, kind):
    fit, df = fit_of(model, kind), frame_of(model, kind)
    types = [t for t in fit.types if fit.levels is not None or t not in ("class", "prob")]
    assert {"response", "link"} <= set(types)
    for type in types:
        out = fit.predict(df, type)
        assert out.index.equals(df.index), type
        missing = out.isna() if isinstance(out, pd.Series) else out.isna().any(axis=1)
        assert list(df.index[missing]) == MISSING, type
        one = fit.predict(df.iloc[[5]], type)
        assert len(one) == 1
        assert len(fit.predict(df.iloc[:0], type)) == 0
        assert fit.predict(df.loc[MISSING], type).isna().all(axis=None)
        pd.testing.assert_index_equal(fit.predict(df[::-1], type).index, df.index[::-1])
    if fit.levels is not None:
        classes = fit.predict(df, "class")
        assert set(classes.dropna()) <= set(fit.levels) and classes[MISSING].isna().all()
        assert tuple(fit.predict(df, "prob").columns) == fit.levels
    with pytest.raises(ld.ArgumentError, match="type must be one of"):
        fit.predict(df, "nonsense")


@cases
def test_better_than_nothing(model, kind):
    fit = fit_of(model, kind)
    row = fit.evaluate(frame_of(model, kind)).iloc[0]
    assert row["dev_ratio"] > 0.3 and row["n"] == N - 2
    if fit.levels is not None:
        assert row["accuracy"] > 0.7


@cases
def test_unseen_and_missing_columns(model, kind):
    fit, df = fit_of(model, kind), frame_of(model, kind)
    with pytest.raises(ld.DataError, match=r"'arm'.*'C'"):
        fit.predict(df.assign(arm="C"))
    assert {"age", "arm"} <= set(fit._reader.features) <= {"age", "dose mg", "arm"}
    for name in fit._reader.features:
        with pytest.raises(ld.LodimError, match=name):
            fit.predict(df.drop(columns=name))
    with pytest.raises(ld.DataError, match="age"):
        fit.predict(df.assign(age="old"))
    fit.predict(df.drop(columns=["answer", "w", "o"]))  # not needed
    if fit.levels is not None and kind == "text":
        with pytest.raises(ld.DataError, match="dead"):
            fit.evaluate(df.assign(answer="dead"))


@cases
def test_tidy_glance_augment(model, kind):
    fit, df = fit_of(model, kind), frame_of(model, kind)
    tidy, glance, augmented = fit.tidy(), fit.glance(), fit.augment(df)
    assert {"term", "estimate"} <= set(tidy) and len(tidy) and tidy["estimate"].notna().all()
    assert len(glance) == 1
    assert {"family", "n", "df", "dev_ratio", PENALTY[model], "converged"} <= set(glance)
    assert glance["n"][0] == used(model)[0] and glance["converged"][0]
    pd.testing.assert_frame_equal(augmented[df.columns], df)
    assert len(augmented) == N and {".resid", ".loss"} <= set(augmented)
    chosen = tidy[tidy["chosen"]] if "chosen" in tidy else tidy  # of many models, one predicts
    np.testing.assert_array_equal(fit.coef().to_numpy(), chosen["estimate"])
    for out in (tidy, glance):
        assert not out.columns.duplicated().any()


@models
def test_what_augment_adds_is_no_feature_of_the_next_fit(model):
    kind = TAKES[model][0]
    fit, df = fit_of(model, kind), frame_of(model, kind)
    augmented = fit.augment(df)
    added = [name for name in augmented if name not in df]
    again = model(FORMULA, augmented, **CHEAP[model])
    assert again.design.names == fit.design.names and list(again.design.left_out) == added
    pd.testing.assert_series_equal(again.coef(), fit.coef())
    text, report = (" ".join(str(out).split()) for out in (again, again.summary()))
    assert f"({len(added)} of augment() left out)" in text
    assert f"as answers that augment() has added: {', '.join(added[:2])}" in report
    assert "augment()" not in str(fit) and fit.design.left_out == ()


@cases
def test_save_and_load(model, kind, tmp_path):
    fit, df, path = fit_of(model, kind), frame_of(model, kind), tmp_path / "fit.lodim"
    fit.save(path)
    back = ld.load(path)
    assert type(back) is type(fit) and str(back) == str(fit) and back.levels == fit.levels
    assert str(back.summary()) == str(fit.summary())
    for type_ in ("response", "link"):
        assert back.predict(df, type_).equals(fit.predict(df, type_))
    assert path.stat().st_size < 200_000


@cases
def test_seed_and_threads(model, kind):
    df = frame_of(model, kind)
    one, two, other = (
        model(FORMULA, df, **CHEAP[model] | {"seed": s, "threads": t})
        for s, t in ((7, 1), (7, 2), (8, 1))
    )
    assert one.predict(df, "link").equals(two.predict(df, "link"))
    assert str(one) != "" and one.settings.seed == 7 and other.settings.seed == 8


@pytest.mark.parametrize("kind", ["text", "multinomial"])
@models
def test_renamed_and_reordered_classes(model, kind):
    """Of values that repeat, so that distances and classes are tied; of proset, one batch."""
    cheap = CHEAP[model] | ({"n_batches": 1} if model is ld.proset else {})
    df = frame_of(model, kind).round({"age": -1, "dose mg": -1})
    names = LEVELS[kind]
    code = dict(zip(names, names[1:] + names[:1], strict=True))
    other = df.assign(answer=df["answer"].map(code))
    order = pd.CategoricalDtype(names[::-1])
    one = model(FORMULA, df, **cheap).predict(df, "prob")
    for data, back in (
        (other, code),
        (df.astype({"answer": order}), dict(zip(names, names, strict=True))),
    ):
        two = model(FORMULA, data, **cheap).predict(df, "prob")
        again = pd.DataFrame({name: two[back[name]] for name in names})
        moved = np.nan_to_num(one[[*names]].to_numpy() - again.to_numpy())
        assert np.sqrt(np.mean(moved**2)) < 0.02 and np.quantile(np.abs(moved), 0.9) < 1e-3


@models
def test_data_is_left_alone(model):
    df = frame_of(model, "text")
    before = df.copy(deep=True)
    model(FORMULA, df, **CHEAP[model]).predict(df)
    pd.testing.assert_frame_equal(df, before)


@models
def test_other_frames(model):
    df = frame_of(model, "text").dropna()
    expected = fit_of(model, "text")
    as_dict = {name: df[name].tolist() for name in df}
    one = model(FORMULA, as_dict, **CHEAP[model])
    np.testing.assert_allclose(one.predict(as_dict), expected.predict(df), rtol=1e-9)
    polars = pytest.importorskip("polars")
    pytest.importorskip("narwhals")
    pl = polars.DataFrame(as_dict)
    two = model(FORMULA, pl, **CHEAP[model])
    np.testing.assert_array_equal(two.predict(pl), one.predict(as_dict))


# Refusals --------------------------------------------------------------------------------------


class Dumb:
    """An estimator that tells no probabilities."""

    def fit(self, X, y):
        return self


class Vote(Dumb):
    """An estimator that takes no weights: class shares."""

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def bad(change=None, formula=FORMULA, kind=None, **arguments):
    def call(model):
        df = frame(kind or TAKES[model][0])
        return model(formula, change(df) if change else df, **CHEAP[model] | arguments)

    return call


def penalized(value):
    return lambda model: bad(**{PENALTY[model]: value})(model)


def infinite(df):
    return df.assign(age=df["age"].where(df.index != 1005, np.inf))


REFUSED = {
    "no rows": (bad(lambda d: d[:0]), ld.DataError, "no rows"),
    "no rows left": (bad(lambda d: d.assign(age=np.nan)), ld.DataError, "'age' in 80"),
    "constant response": (bad(lambda d: d.assign(answer=3.0)), ld.DataError, "3 in every row"),
    "one class": (bad(lambda d: d.assign(answer="a")), ld.DataError, "one class only"),
    "missing response": (bad(lambda d: d.drop(columns="answer")), ld.FormulaError, "answer"),
    "text for a number": (
        bad(formula="answer ~ np.log(arm)"), ld.LodimError, "arm",
    ),
    "text response as gaussian": (bad(kind="text", family="gaussian"), ld.DataError, "numbers"),
    "three classes as binomial": (
        bad(kind="multinomial", family="binomial"), ld.DataError, "multinomial",
    ),
    "infinite feature": (bad(infinite), ld.DataError, "'age' is infinite in row 1005"),
    "infinite response": (
        bad(lambda d: d.assign(answer=d["answer"].where(d.index != 1001, -np.inf)),
            kind="gaussian"),
        ld.DataError, "'answer' is infinite",
    ),
    "dates": (
        bad(lambda d: d.assign(age=pd.Timestamp("2020-01-01"))), ld.DataError, "'age'",
    ),
    "mixed column": (
        bad(lambda d: d.assign(age=[1, "x"] * 40)), ld.DataError, "mixes",
    ),
    "duplicate column": (
        bad(lambda d: pd.concat([d, d[["age"]]], axis=1)), ld.LodimError, "age",
    ),
    "no frame": (lambda m: m(FORMULA, [1, 2, 3], **CHEAP[m]), ld.DataError, "DataFrame"),
    "syntax": (bad(formula="answer ~ age +"), ld.FormulaError, "age"),
    "two tildes": (bad(formula="answer ~ age ~ arm"), ld.FormulaError, "~"),
    "no tilde": (bad(formula="answer"), ld.FormulaError, "~"),
    "no response": (bad(formula="~ age"), ld.LodimError, "response"),
    "formula is no text": (bad(formula=7), ld.LodimError, "formula"),
    "near match": (bad(formula="answer ~ aeg"), ld.FormulaError, "age"),
    "forbidden function": (
        bad(formula="answer ~ __import__('os')"), ld.FormulaError, "__import__",
    ),
    "forbidden attribute": (bad(formula="answer ~ np.save(age)"), ld.FormulaError, "np.save"),
    "unknown weights": (bad(weights="wt"), ld.LodimError, "wt"),
    "short weights": (bad(weights=np.ones(3)), ld.DataError, "3 values"),
    "negative weights": (bad(weights=-np.ones(N)), ld.DataError, "weights are not negative"),
    "zero weights": (bad(weights=np.zeros(N)), ld.DataError, "zero"),
    "text weights": (bad(weights="arm"), ld.DataError, "weights"),
    "infinite offset": (bad(offset=np.full(N, np.inf)), ld.DataError, "offset is infinite"),
    "wide offset": (bad(offset=np.zeros((N, 2))), ld.DataError, "2 columns"),
    "unknown family": (bad(family="poisson"), ld.ArgumentError, "gaussian, binomial"),
    "unknown dtype": (bad(dtype="int8"), ld.ArgumentError, "float64"),
    "penalty < 0": (
        penalized(-0.1), ld.ArgumentError, "(lambda_v? must be 0 or more|gamma must be a positive)",
    ),
    "penalty nan": (penalized(np.nan), ld.ArgumentError, "(lambda_v?|gamma) must be"),
    "penalty inf": (penalized(np.inf), ld.ArgumentError, "(lambda_v?|gamma) must be"),
    "penalty text": (penalized("big"), ld.ArgumentError, "(lambda_v?|gamma) must be"),
    "threads": (bad(threads=0), ld.ArgumentError, "threads"),
    "seed": (bad(seed=-1), ld.ArgumentError, "seed"),
    "seed fraction": (bad(seed=1.5), ld.ArgumentError, "seed"),
    "control key": (bad(control={"maxiter": 3}), ld.ArgumentError, "'maxiter'.*max_iter"),
    "control is no mapping": (bad(control=[("max_iter", 3)]), ld.ArgumentError, "control"),
    "control of an argument": (bad(control={"seed": 3}), ld.ArgumentError, "seed"),
    "standardize": (bad(standardize="yes"), ld.ArgumentError, "standardize"),
}  # fmt: skip
PROSET_REFUSED = {
    "n_batches": (bad(n_batches=0), ld.ArgumentError, "n_batches must be a whole number from 1"),
    "n_candidates": (bad(n_candidates=0.5), ld.ArgumentError, "n_candidates"),
    "lambda_w": (bad(lambda_w=-1), ld.ArgumentError, "lambda_w must be 0 or more"),
    "l1_ratio_v": (bad(l1_ratio_v=1.5), ld.ArgumentError, "l1_ratio_v must be between 0 and 1"),
    "l1_ratio_w": (bad(l1_ratio_w=-1), ld.ArgumentError, "l1_ratio_w must be between 0 and 1"),
    "loss": (bad(loss="absolute"), ld.ArgumentError, "squared, density"),
    "max_fraction": (bad(control={"max_fraction": 1.0}), ld.ArgumentError, "max_fraction"),
    "hard_share": (bad(control={"hard_share": 0.0}), ld.ArgumentError, "hard_share"),
    "max_rows": (bad(control={"max_rows": 0}), ld.ArgumentError, "max_rows"),
    "precision": (bad(control={"precision": "half"}), ld.ArgumentError, "float32, float64"),
    "tiny class": (
        bad(lambda d: d.assign(answer=["a", "a"] + ["b"] * (N - 2))), ld.DataError,
        "class 'a' has 2 rows.*needs 3",
    ),
    "two rows": (bad(lambda d: d[:2]), ld.DataError, "there are 2 rows.*needs 3"),
}  # fmt: skip
MELM_REFUSED = {
    "number": (bad(kind="gaussian"), ld.DataError, "'answer' is a number.*family='multinomial'"),
    "k = 0": (bad(k=0), ld.ArgumentError, "k must be a whole number from 1"),
    "k too large": (bad(k=5), ld.DataError, "k=5 dimensions need 5 features"),
    "k above rank": (
        bad(lambda d: d.assign(arm=np.resize(list("ABC"), N)), k=5), ld.DataError,
        "4 directions only, too few for k=5",
    ),
    "gamma = 0": (bad(gamma=0), ld.ArgumentError, "gamma must be a positive number"),
    "covariance": (bad(covariance="robust"), ld.ArgumentError, "empirical, ledoit-wolf"),
    "divergence": (bad(divergence="max"), ld.ArgumentError, "sum, mean"),
    "entropy": (bad(entropy="none"), ld.ArgumentError, "max, min"),
    "entropy of classes": (bad(entropy="min"), ld.ArgumentError, "without a response"),
    "penalty": (bad(penalty=1), ld.ArgumentError, "penalty must be True or False"),
    "n_starts": (bad(n_starts=0), ld.ArgumentError, "n_starts"),
    "classifier": (bad(classifier="svm"), ld.ArgumentError, "kde, knn, or an estimator"),
    "no estimator": (bad(classifier=7), ld.ArgumentError, "estimator with fit"),
    "class of estimators": (bad(classifier=Vote), ld.ArgumentError, r"give an instance.*Vote\(\)"),
    "no probabilities": (bad(classifier=Dumb()), ld.ArgumentError, "Dumb has no predict_proba"),
    "no weights": (
        bad(classifier=Vote(), weights="w"), ld.ArgumentError, "Vote takes no weights",
    ),
    "prior": (bad(control={"prior": "flat"}), ld.ArgumentError, "shares, equal"),
    "prior of an estimator": (
        bad(classifier=Vote(), control={"prior": "equal"}), ld.ArgumentError, "prior='equal' is",
    ),
    "n_neighbours": (bad(control={"n_neighbours": 3}), ld.ArgumentError, "classifier='knn'"),
    "offset": (bad(offset="o"), ld.ArgumentError, "takes no offset"),
    "tiny class": (
        bad(lambda d: d.assign(answer=["a", "a"] + ["b"] * (N - 2))), ld.DataError,
        "rows of class 'a' that count: 2.*needs 3",
    ),
    "no feature": (
        bad(lambda d: d.assign(age=1.0, arm="A", **{"dose mg": 2.0})), ld.DataError, "no feature",
    ),
    "given away": (
        bad(lambda d: d.assign(age=(d["answer"] == "sick").astype(float)), formula="answer ~ age",
            k=1),
        ld.DataError, "gives the class away",
    ),
    "for classes": (
        bad(formula="~ . - w - o - answer"), ld.ArgumentError, "gamma is for classes",
    ),
}  # fmt: skip
RIPR_REFUSED = {
    "max_dim": (bad(max_dim=4), ld.ArgumentError, "max_dim must be a whole number from 1 to 3"),
    "min_dim": (bad(min_dim=3), ld.ArgumentError, "min_dim must be at most max_dim=2"),
    "k": (bad(k=0), ld.ArgumentError, "k must be a whole number from 1"),
    "a": (bad(a=1.0), ld.ArgumentError, "a must be at least 0 and below 1"),
    "balanced": (bad(balanced=1), ld.ArgumentError, "balanced must be True or False"),
    "learner": (bad(learner="svm"), ld.ArgumentError, "an estimator with fit"),
    "learner class": (bad(learner=dict), ld.ArgumentError, "no class"),
    "n_clusters": (bad(n_clusters=3), ld.ArgumentError, "without a response"),
    "max_views": (bad(max_views=0), ld.ArgumentError, "max_views"),
    "share": (bad(control={"share": 1.0}), ld.ArgumentError, "share must be"),
    "smooth": (bad(control={"smooth": -1}), ld.ArgumentError, "smooth must be 0 or more"),
    "order": (bad(order="arm"), ld.DataError, "order: column 'arm' holds"),
    "nothing varies": (
        bad(lambda d: d.assign(age=1.0, arm="A", **{"dose mg": 2.0})), ld.DataError,
        "no feature varies",
    ),
    "family of several": (
        bad(formula="answer + age ~ arm + w", family="gaussian"), ld.ArgumentError,
        "family is for one response",
    ),
}  # fmt: skip
GBMAP_REFUSED = {
    "m = 0": (bad(m=0), ld.ArgumentError, "m must be a whole number from 1"),
    "m = 2.5": (bad(m=2.5), ld.ArgumentError, "m must be a whole number"),
    "m true": (bad(m=True), ld.ArgumentError, "m must be"),
    "beta = 0": (bad(beta=0), ld.ArgumentError, "beta must be a positive"),
    "beta nan": (bad(beta=np.nan), ld.ArgumentError, "beta"),
    "l1_ratio": (bad(l1_ratio=1.5), ld.ArgumentError, "l1_ratio must be between 0 and 1"),
    "activation": (bad(activation="relu"), ld.ArgumentError, "softplus, identity"),
    "n_starts": (bad(n_starts=0), ld.ArgumentError, "n_starts"),
    "max_iter": (bad(control={"max_iter": 0}), ld.ArgumentError, "max_iter"),
    "tol": (bad(control={"tol": -1}), ld.ArgumentError, "tol"),
    "intercept": (bad(control={"penalize_intercept": 1}), ld.ArgumentError, "penalize_intercept"),
}


COSTNET_REFUSED = {
    "costs": (bad(costs={"age": 1}), ld.ArgumentError, "costs lack 'dose mg', 'arm'"),
    "negative cost": (bad(costs={"age": -1}), ld.ArgumentError, "'age' must be a number, 0 to"),
    "misspelt cost": (
        bad(costs={"ages": 1, "dose mg": 1, "arm": 1}), ld.ArgumentError, "they have 'ages'",
    ),
    "unknown name": (bad(depends_on={"arm": "ages"}), ld.ArgumentError, "did you mean 'age'"),
    "circle": (
        bad(depends_on={"arm": "age", "age": "arm"}), ld.ArgumentError, "age -> arm -> age",
    ),
    "series": (
        bad(alternatives={"age": ["arm"]}), ld.ArgumentError, "'age' is a column",
    ),
    "budget < 0": (bad(budget=-1), ld.ArgumentError, "budget must be 0 or more"),
    "budget text": (bad(budget="all"), ld.ArgumentError, "budget must be 0 or more"),
    "budget and lambda_": (bad(lambda_=0.1), ld.ArgumentError, "either a budget or lambda_"),
    "rules": (bad(rules="best"), ld.ArgumentError, "group, reweighted, lasso, greedy"),
    "l1_ratio": (bad(l1_ratio=0), ld.ArgumentError, "l1_ratio must be above 0, and at most 1"),
    "relax": (bad(relax=2), ld.ArgumentError, "relax must be between 0 and 1"),
    "closure": (bad(closure="none"), ld.ArgumentError, "closure must be one of all, direct"),
    "solver": (bad(solver="lbfgs"), ld.ArgumentError, "solver must be one of auto, cvxpy"),
    "n_lambda": (bad(n_lambda=1), ld.ArgumentError, "n_lambda"),
    "criterion": (
        bad(control={"criterion": "cp"}), ld.ArgumentError, "deviance, aic, hq, bic, ebic",
    ),
    "max_iter": (bad(control={"max_iter": 0}), ld.ArgumentError, "max_iter"),
    "tol": (bad(control={"tol": 0}), ld.ArgumentError, "tol"),
    "network": (bad(control={"network": 1}), ld.ArgumentError, "network"),
}  # fmt: skip
# What a model refuses in other words, or does not know.
OTHER_WORDS = {(m, "no rows left"): "'age' is missing in every row" for m in PARTIAL}
OTHER_WORDS[ld.ripr, "control key"] = "'maxiter'.*tolerance"


@models
@pytest.mark.parametrize("case", REFUSED)
def test_refused(model, case):
    if case == "no response" and model in WITHOUT_RESPONSE:
        pytest.skip("it takes a formula without a response")
    call, error, words = REFUSED[case]
    if any(name in case for name in LACKS.get(model, ())):
        error, words = TypeError, "unexpected keyword argument"
    with pytest.raises(error, match=OTHER_WORDS.get((model, case), words)):
        call(model)


@pytest.mark.parametrize("case", GBMAP_REFUSED)
def test_refused_by_gbmap(case):
    call, error, words = GBMAP_REFUSED[case]
    with pytest.raises(error, match=words):
        call(ld.gbmap)


@pytest.mark.parametrize("case", RIPR_REFUSED)
def test_refused_by_ripr(case):
    call, error, words = RIPR_REFUSED[case]
    with pytest.raises(error, match=words):
        call(ld.ripr)


@pytest.mark.parametrize("case", PROSET_REFUSED)
def test_refused_by_proset(case):
    call, error, words = PROSET_REFUSED[case]
    with pytest.raises(error, match=words):
        call(ld.proset)


@pytest.mark.parametrize("case", COSTNET_REFUSED)
def test_refused_by_costnet(case):
    call, error, words = COSTNET_REFUSED[case]
    with pytest.raises(error, match=words):
        call(ld.costnet)


@pytest.mark.parametrize("case", MELM_REFUSED)
def test_refused_by_melm(case):
    call, error, words = MELM_REFUSED[case]
    with pytest.raises(error, match=words):
        call(ld.melm)


@pytest.mark.parametrize(
    "model", [m for m in MODELS if m not in WITHOUT_OFFSET], ids=lambda m: m.__name__
)
def test_offset_at_predict(model):
    df = frame("gaussian")
    named, given_ = (
        model(FORMULA, df, offset=o, **CHEAP[model]) for o in ("o", df["o"].to_numpy())
    )
    np.testing.assert_array_equal(named.predict(df), given_.predict(df, offset=df["o"].to_numpy()))
    with pytest.raises(ld.DataError, match="fitted with an offset"):
        given_.predict(df)
    with pytest.raises(ld.LodimError, match="'o'"):
        named.predict(df.drop(columns="o"))
    with pytest.raises(ld.DataError, match="without an offset"):
        fit_of(model, "gaussian").predict(df, offset=np.zeros(N))


@models
def test_files_refused(model, tmp_path):
    path = tmp_path / "fit"
    fit = fit_of(model, TAKES[model][0])
    fit.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(ld.StoreError):
        ld.load(path)
    path.write_bytes(b"not a fit")
    with pytest.raises(ld.StoreError, match="not a file that lodim saved"):
        ld.load(path)
    with pytest.raises(ld.StoreError, match="no file"):
        ld.load(tmp_path / "elsewhere")
    newer = pytest.MonkeyPatch()
    with newer.context() as patch:
        patch.setattr(store, "FORMAT", store.FORMAT + 1)
        fit.save(path)
    with pytest.raises(ld.StoreError, match="upgrade"):
        ld.load(path)


# Any frame at all ------------------------------------------------------------------------------

numbers = st.one_of(
    st.floats(-1e6, 1e6), st.none(), st.just(float("nan")), st.integers(-5, 5).map(float),
    st.sampled_from([float("inf"), 1e300, -1e-300]),
)  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(["x", "a b", "1st", "class", "C", "Q", "np", "é", "x:z", "(Intercept)", "`q`"]),
    st.text(min_size=1, max_size=4),
)


def column(n):
    def many(values):
        return st.lists(values, min_size=n, max_size=n)

    return st.one_of(
        many(numbers).map(lambda v: np.array(v, dtype=float)),
        many(st.floats(-3, 3)).map(np.array),
        many(st.integers(0, 3)).map(np.array),
        many(st.booleans()).map(np.array),
        many(st.sampled_from(["a", "b", "c", None])).map(lambda v: np.array(v, dtype=object)),
        many(st.sampled_from(["a", ""])).map(pd.Categorical),
        st.floats(-5, 5).map(lambda v: np.full(n, v)),
        many(st.sampled_from([1, "a", None, 2.5, True])).map(lambda v: np.array(v, dtype=object)),
    )


@st.composite
def frames(draw):
    n = draw(st.one_of(st.integers(1, 4), st.integers(5, 25)))
    names = draw(st.lists(NAMES, max_size=4, unique=True))
    names = [name for name in names if name != "y"]
    df = pd.DataFrame({name: draw(column(n)) for name in names}, index=range(n))
    df["y"] = draw(column(n))
    return df


def suited(model, df, seed):
    """The frame with a response that the model takes: few frames drawn blindly have classes."""
    if model in CLASSES_ONLY and seed:
        labels = np.random.default_rng(seed).choice(["a", "b", "c"][: 1 + seed], len(df))
        return df.assign(y=labels)
    return df


@models
@given(df=frames(), seed=st.integers(0, 3), weighted=st.booleans(),
       penalty=st.integers(0, 2))  # fmt: skip
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_frame(model, df, seed, weighted, penalty):
    df = suited(model, df, seed)
    weights = np.random.default_rng(seed).integers(0, 3, len(df)) if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        try:
            shrunk = FEW_STAGES[model] | {PENALTY[model]: PENALTIES[model][penalty]}
            fit = model("y ~ .", df, seed=seed, threads=1, weights=weights,
                        control=CONTROL[model], **shrunk)  # fmt: skip
        except ld.LodimError:
            return
        try:
            out, augmented = fit.predict(df, "link"), fit.augment(df)
        except ld.DataError as error:  # a level of rows alone that miss something else
            assert re.search("not among those the model knows|too far", str(error))
            return
        assert len(out) == len(df)
        assert np.isfinite(out.dropna().to_numpy(float)).all()
        if model in PARTIAL:
            known = df.index[fit.predict(df, "view").notna()]
        else:
            known = df.index[df[fit._reader.features].notna().all(axis=1)]
        assert list(out.dropna().index) == list(known)  # the response is not needed
        assert str(fit) and str(fit.summary()) and len(augmented) == len(df)
        assert np.isfinite(fit.glance()["deviance"][0])


@models
@given(df=frames(), seed=st.integers(0, 2))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_frame_by_default(model, df, seed):
    """What chooses its own settings survives odd folds too."""
    df = suited(model, df, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        try:
            fit = model("y ~ .", df, threads=1, **OPEN[model])
        except ld.LodimError:
            return
        try:
            out = fit.predict(df, "link")
        except ld.DataError as error:  # a level of rows alone that miss something else
            assert re.search("not among those the model knows|too far", str(error))
            return
        assert np.isfinite(out.dropna().to_numpy(float)).all()
