"""The contract that every model meets, whatever its maths."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lodim as ld
from lodim import store

MODELS = [ld.gbmap, ld.proset, ld.costnet]
CHEAP = {
    ld.gbmap: {"m": 3, "lambda_": 0.1, "threads": 1},
    ld.proset: {"n_batches": 2, "threads": 1},
    ld.costnet: {"budget": 3, "threads": 1},
}
STAGES = {ld.gbmap: "m", ld.proset: "n_batches"}
PENALTY = {ld.gbmap: "lambda_", ld.proset: "lambda_v", ld.costnet: "lambda_"}
OPEN = {ld.gbmap: {}, ld.proset: {"n_batches": None, "lambda_v": None}, ld.costnet: {}}
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
cases = pytest.mark.parametrize(
    "model, kind", [(m, k) for m in MODELS for k in KINDS], ids=lambda v: getattr(v, "__name__", v)
)
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
_fits = {}


def fit_of(model, kind):
    if (model, kind) not in _fits:
        _fits[model, kind] = model(FORMULA, frame(kind), **CHEAP[model])
    return _fits[model, kind]


@cases
def test_print_and_summary(model, kind):
    fit = fit_of(model, kind)
    text, report = str(fit), fit.summary()
    assert f'{model.__name__}("{FORMULA}", data=df' in text
    assert fit.family.name in text and f"Rows: {N - 2} (2 dropped" in text
    assert text == repr(fit)
    for out in (str(report), report.as_html(), report.as_latex()):
        for word in ("answer", fit.family.name, *fit.reader.features):
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
    fit, df = fit_of(model, kind), frame(kind)
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
    row = fit.evaluate(frame(kind)).iloc[0]
    assert row["dev_ratio"] > 0.3 and row["n"] == N - 2
    if fit.levels is not None:
        assert row["accuracy"] > 0.7


@cases
def test_unseen_and_missing_columns(model, kind):
    fit, df = fit_of(model, kind), frame(kind)
    with pytest.raises(ld.DataError, match=r"'arm'.*'C'"):
        fit.predict(df.assign(arm="C"))
    assert {"age", "arm"} <= set(fit.reader.features) <= {"age", "dose mg", "arm"}
    for name in fit.reader.features:
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
    fit, df = fit_of(model, kind), frame(kind)
    tidy, glance, augmented = fit.tidy(), fit.glance(), fit.augment(df)
    assert {"term", "estimate"} <= set(tidy) and len(tidy) and tidy["estimate"].notna().all()
    assert len(glance) == 1
    assert {"family", "n", "df", "dev_ratio", PENALTY[model], "converged"} <= set(glance)
    assert glance["n"][0] == N - 2 and glance["converged"][0]
    pd.testing.assert_frame_equal(augmented[df.columns], df)
    assert len(augmented) == N and {".resid", ".loss"} <= set(augmented)
    used = tidy[tidy["chosen"]] if "chosen" in tidy else tidy  # of many models, one predicts
    np.testing.assert_array_equal(fit.coef().to_numpy(), used["estimate"])
    for out in (tidy, glance):
        assert not out.columns.duplicated().any()


@cases
def test_save_and_load(model, kind, tmp_path):
    fit, df, path = fit_of(model, kind), frame(kind), tmp_path / "fit.lodim"
    fit.save(path)
    back = ld.load(path)
    assert type(back) is type(fit) and str(back) == str(fit) and back.levels == fit.levels
    assert str(back.summary()) == str(fit.summary())
    for type_ in ("response", "link"):
        assert back.predict(df, type_).equals(fit.predict(df, type_))
    assert path.stat().st_size < 200_000


@cases
def test_seed_and_threads(model, kind):
    df = frame(kind)
    one, two, other = (
        model(FORMULA, df, **CHEAP[model] | {"seed": s, "threads": t})
        for s, t in ((7, 1), (7, 2), (8, 1))
    )
    assert one.predict(df, "link").equals(two.predict(df, "link"))
    assert str(one) != "" and one.settings.seed == 7 and other.settings.seed == 8


@models
def test_data_is_left_alone(model):
    df = frame("text")
    before = df.copy(deep=True)
    model(FORMULA, df, **CHEAP[model]).predict(df)
    pd.testing.assert_frame_equal(df, before)


@models
def test_other_frames(model):
    df = frame("text").dropna()
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


def bad(change=None, formula=FORMULA, kind="gaussian", **arguments):
    return lambda model: model(
        formula, change(frame(kind)) if change else frame(kind), **CHEAP[model] | arguments
    )


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
        bad(lambda d: d.assign(answer=d["answer"].where(d.index != 1001, -np.inf))),
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
    "lambda_ < 0": (penalized(-0.1), ld.ArgumentError, "lambda_v? must be 0 or more"),
    "lambda_ nan": (penalized(np.nan), ld.ArgumentError, "lambda_"),
    "lambda_ inf": (penalized(np.inf), ld.ArgumentError, "lambda_"),
    "lambda_ text": (penalized("big"), ld.ArgumentError, "lambda_"),
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
    "negative cost": (bad(costs={"age": -1}), ld.ArgumentError, "'age' must be a number, 0 or"),
    "unused cost": (
        bad(costs={"age": 1, "dose mg": 1, "arm": 1, "w": 1}), ld.ArgumentError, "uses 'w'",
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
    "criterion": (bad(control={"criterion": "cp"}), ld.ArgumentError, "deviance, aic, bic, ebic"),
    "max_iter": (bad(control={"max_iter": 0}), ld.ArgumentError, "max_iter"),
    "tol": (bad(control={"tol": 0}), ld.ArgumentError, "tol"),
    "network": (bad(control={"network": 1}), ld.ArgumentError, "network"),
}  # fmt: skip


@models
@pytest.mark.parametrize("case", REFUSED)
def test_refused(model, case):
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call(model)


@pytest.mark.parametrize("case", GBMAP_REFUSED)
def test_refused_by_gbmap(case):
    call, error, words = GBMAP_REFUSED[case]
    with pytest.raises(error, match=words):
        call(ld.gbmap)


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


@models
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
    fit = fit_of(model, "gaussian")
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


@models
@given(df=frames(), seed=st.integers(0, 3), weighted=st.booleans(),
       lambda_=st.sampled_from([0.0, 1e-3, 1.0]))  # fmt: skip
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_frame(model, df, seed, weighted, lambda_):
    weights = np.random.default_rng(seed).integers(0, 3, len(df)) if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        try:
            shrunk = {STAGES[model]: 2} if model in STAGES else {}
            shrunk[PENALTY[model]] = lambda_
            fit = model("y ~ .", df, seed=seed, threads=1, weights=weights,
                        control={"max_iter": 60}, **shrunk)  # fmt: skip
        except ld.LodimError:
            return
        try:
            out, augmented = fit.predict(df, "link"), fit.augment(df)
        except ld.DataError as error:  # a level of rows alone that miss something else
            assert "not among those the model knows" in str(error)
            return
        assert len(out) == len(df)
        assert np.isfinite(out.dropna().to_numpy(float)).all()
        known = df[fit.reader.features].notna().all(axis=1)
        assert list(out.dropna().index) == list(df.index[known])  # the response is not needed
        assert str(fit) and str(fit.summary()) and len(augmented) == len(df)
        assert np.isfinite(fit.glance()["deviance"][0])


@models
@given(df=frames())
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_frame_by_default(model, df):
    """What chooses its own settings survives odd folds too."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        try:
            control = {"max_iter": 30} | ({"max_stages": 2} if model in STAGES else {})
            fit = model("y ~ .", df, threads=1, control=control, **OPEN[model])
        except ld.LodimError:
            return
        assert np.isfinite(fit.predict(df, "link").dropna().to_numpy(float)).all()
