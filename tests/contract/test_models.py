"""The contract that every model meets, whatever its maths."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import lodim as ld
from contract.cases import (
    FORMULA,
    LEVELS,
    MISSING,
    MODELS,
    SLOW,
    N,
    bad,
    contract_of,
    frame,
    frame_of,
    missing_of,
    quick,
    some_long,
)
from lodim import forms
from lodim.design.frame import name_of
from lodim.fitting import storage as store


def used(model):
    """How many rows of the frame a fit counts, and what its print says of the others."""
    if contract_of(model).keeps_missing:
        return N, "missing feature in every view: 2"
    return (N - 2, "(2 dropped") if missing_of(model) == "drop" else (N, "(2 filled in")


def unanswered(model, fit):
    """The rows of the frame that a fit does not answer."""
    filled = missing_of(model) == "indicator"
    return [] if filled or contract_of(model).answers_all(fit) else MISSING


SHORT = ("gaussian", "text", "multinomial")  # kinds of responses that the short tests try
cases = pytest.mark.parametrize(
    "model, kind",
    [
        pytest.param(m, k, marks=[] if k in SHORT else pytest.mark.long, id=f"{m.__name__}-{k}")
        for m in MODELS
        for k in contract_of(m).kinds
    ],
)
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
_fits = {}


def fit_of(model, kind):
    if (model, kind) not in _fits:
        _fits[model, kind] = model(FORMULA, frame_of(model, kind), **contract_of(model).cheap)
    return _fits[model, kind]


@pytest.mark.long
@models
def test_rows_of_weight_zero_are_counted_nowhere(model):
    df = frame_of(model, "text").dropna().assign(w=1.0)
    more = df.iloc[:20].assign(w=0.0, answer=df["answer"].iloc[::-1].to_numpy()[:20])
    more.index = range(20)
    shown = []
    for data in (df, pd.concat([df, more])):
        fit = model(FORMULA, data, weights="w", **contract_of(model).cheap)
        assert fit.n == len(df)
        shown.append(repr(fit))
        assert f" {len(df) + 20} " not in str(fit.summary())
    assert shown[0] == shown[1]


@models
def test_a_formula_without_features_prints_nothing(model, capfd):
    df = frame_of(model, "text")
    try:
        fit = model("answer ~ 1", df, progress=False, **contract_of(model).few_stages)
        share = (df["answer"] == "sick").mean()
        assert np.allclose(fit.predict(df), share, atol=0.02)
    except ld.LodimError as error:
        assert "feature" in str(error)
    assert capfd.readouterr() == ("", "")  # not even what LAPACK writes past sys.stdout


def test_a_file_that_names_choices_without_their_table_is_refused(tmp_path):
    fit = ld.gbmap(FORMULA, frame("gaussian"), m=1)
    state = forms.write(fit)
    assert state["chosen"]
    store.write(tmp_path / "fit", "gbmap", state | {"selection": None})
    with pytest.raises(ld.StoreError, match="lambda_ chosen, without what was tried"):
        ld.load(tmp_path / "fit")


@pytest.mark.long
@models
def test_long_tables_of_a_summary_are_cut_unless_it_is_full(model, monkeypatch):
    monkeypatch.setattr("lodim.models.proset.report.MOST_FEATURES", 3)  # it hardly uses more
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(150, 45))).add_prefix("v")
    df["c"] = np.where(df.to_numpy().sum(axis=1) + 6 * rng.normal(size=150) > 0, "a", "b")
    formula, arguments = contract_of(model).long
    fit = model(formula, df, **arguments)
    short, full = fit.summary(), fit.summary(full=True)
    said = [" ".join(str(report).split()) for report in (short, full)]
    cut = [any(words in text for words in ("are not shown; ", "Not shown: ")) for text in said]
    assert cut == [True, False]
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
    lost = unanswered(model, fit)
    types = [t for t in fit.types if fit.levels is not None or t not in ("class", "prob")]
    assert {"response", "link"} <= set(types)
    for type in types:
        out = fit.predict(df, type)
        assert out.index.equals(df.index), type
        missing = out.isna() if isinstance(out, pd.Series) else out.isna().any(axis=1)
        assert list(df.index[missing]) == (MISSING if type == "view" else lost), type
        one = fit.predict(df.iloc[[5]], type)
        assert len(one) == 1
        assert len(fit.predict(df.iloc[:0], type)) == 0
        alone = fit.predict(df.loc[MISSING], type)
        gone = bool(lost) or type == "view"
        assert alone.isna().to_numpy().reshape(2, -1).any(axis=1).all() == gone
        pd.testing.assert_index_equal(fit.predict(df[::-1], type).index, df.index[::-1])
    if fit.levels is not None:
        classes = fit.predict(df, "class")
        assert set(classes.dropna()) <= set(fit.levels) and classes[lost].isna().all()
        assert tuple(fit.predict(df, "prob").columns) == fit.levels
    with pytest.raises(ld.ArgumentError, match="type must be one of"):
        fit.predict(df, "nonsense")


def written(folder, df, ending):
    """Files that hold the rows of a frame, as a pattern."""
    for name, part in (("b", df[:33]), ("c", df[33:])):
        if ending == "csv":
            part.to_csv(folder / f"{name}.csv", index=False)
        else:
            part.to_parquet(folder / f"{name}.parquet", index=False)
    return str(folder / f"*.{ending}")


@pytest.mark.long
@cases
def test_files_are_predicted_as_a_frame_is(model, kind, tmp_path):
    """Bit for bit, in memory and into a file; of sums over chunks the last digits may differ."""
    fit, df = fit_of(model, kind), frame_of(model, kind).reset_index(drop=True)
    files = written(tmp_path, df, "parquet")
    types = [t for t in fit.types if fit.levels is not None or t not in ("class", "prob")]
    for type in types:
        expected = pd.DataFrame(fit.predict(df, type))
        pd.testing.assert_frame_equal(pd.DataFrame(fit.predict(files, type)), expected)
        name = fit.predict(files, type, output=tmp_path / f"{type}.out.feather")
        back = pd.read_feather(name)
        assert list(back) == [name_of(c) for c in expected]
        assert (back.isna().to_numpy() == expected.isna().to_numpy()).all()
        same = (back.to_numpy() == expected.to_numpy()) | expected.isna().to_numpy()
        assert same.all(), type
    pd.testing.assert_frame_equal(fit.augment(files), fit.augment(df))
    pd.testing.assert_frame_equal(fit.evaluate(files), fit.evaluate(df), rtol=1e-9)
    table = written(tmp_path, df, "csv")
    pd.testing.assert_frame_equal(
        pd.DataFrame(fit.predict(table)), pd.DataFrame(fit.predict(df)), rtol=1e-12
    )


@cases
def test_better_than_nothing(model, kind):
    fit = fit_of(model, kind)
    row = fit.evaluate(frame_of(model, kind)).iloc[0]
    assert row["dev_ratio"] > 0.3 and row["n"] == N - len(unanswered(model, fit))
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
def test_new_levels_may_be_missing_in_every_method(model, kind):
    """Which the error of each method recommends, as well as to replace them by NaN."""
    fit, df = fit_of(model, kind), frame_of(model, kind)
    new, gone = (df.assign(arm=df["arm"].where(df.index > 1004, v)) for v in ("C", None))
    for method in (fit.evaluate, fit.augment):
        with pytest.raises(ld.DataError, match=r"replace it by NaN, or give new_levels='missing'"):
            method(new)
        found, expected = method(new, new_levels="missing"), method(gone)
        added = [name for name in found if name not in df]
        pd.testing.assert_frame_equal(found[added], expected[added])


def _known(fit, df):
    """The features that a fit reads; declared categories without training rows are missing."""
    parts = [part for term in fit._reader.terms for part in term]
    gone = {part.name: list(part.unseen) for part in parts if getattr(part, "unseen", ())}
    return df[fit._reader.features].apply(lambda x: x.where(~x.isin(gone.get(x.name, []))))


WAYS = [(m, way) for m in MODELS for way in ("drop", "indicator")]


@pytest.mark.parametrize("model, way", WAYS, ids=lambda v: getattr(v, "__name__", v))
def test_rows_that_miss_features_are_dropped_or_filled(model, way, tmp_path):
    """Beside a gap that training had there is a column that says so; a file remembers all of it."""
    kind = contract_of(model).kinds[0]
    df = frame(kind)
    df.loc[1010:1016, "age"] = np.nan
    fit = model(FORMULA, df, missing=way, **quick(model))
    gone = df[["age", "arm"]].isna().any(axis=1)
    assert fit.n == N - (way == "drop") * gone.sum() and fit.design.n_incomplete == gone.sum() == 9
    new = df.assign(**{"dose mg": np.nan})  # training has never missed it
    out = fit.predict(new)
    fit.save(tmp_path / "fit.lodim")
    pd.testing.assert_series_equal(ld.load(tmp_path / "fit.lodim").predict(new), out)
    text, report = " ".join(str(fit).split()), " ".join(str(fit.summary()).split())
    if way == "drop":
        assert fit.design.fills == () and "missing" not in " ".join(fit.design.names)
        used = fit._reader.features  # of costnet, those that it pays for
        assert (out.isna() == new[used].isna().any(axis=1)).all()
        keeps = 'missing="indicator" would keep the 9 rows in which only features are missing'
        assert "(9 dropped for missing values)" in text and keeps in text and keeps in report
        return
    assert fit.design.names[-1] == "age[missing]" and "arm[missing]" in fit.design.names
    assert out.notna().all() and "(9 filled in for missing values)" in text
    mean = dict((f.name, f.value) for f in fit.design.fills)["dose mg"]
    assert mean == pytest.approx(df["dose mg"].mean())
    pd.testing.assert_series_equal(fit.predict(new.assign(**{"dose mg": mean})), out)
    assert "age in 8 rows (by the mean" in report and "arm in 1 row (a level of its own)" in report


@pytest.mark.long
@cases
def test_weights_may_be_shares(model, kind):
    df, weight = frame_of(model, kind), np.random.default_rng(0).uniform(0.5, 1.5, N)
    cheap = contract_of(model).cheap
    fit, light = (model(FORMULA, df, weights=scale * weight, **cheap) for scale in (1.0 / N, 1e-20))
    assert light.converged == fit.converged and light.df == fit.df
    both = (np.asarray(each.predict(df), float) for each in (light, fit))
    np.testing.assert_allclose(*both, rtol=1e-4, atol=1e-4)


@cases
def test_tidy_glance_augment(model, kind):
    fit, df = fit_of(model, kind), frame_of(model, kind)
    tidy, glance, augmented = fit.tidy(), fit.glance(), fit.augment(df)
    assert {"term", "estimate"} <= set(tidy) and len(tidy) and tidy["estimate"].notna().all()
    assert len(glance) == 1
    penalty = {contract_of(model).penalty} - {None}
    assert {"family", "n", "df", "dev_ratio", "converged"} | penalty <= set(glance)
    assert glance["n"][0] == used(model)[0] and glance["converged"][0]
    pd.testing.assert_frame_equal(augmented[df.columns], df)
    assert len(augmented) == N and {".resid", ".loss"} <= set(augmented)
    chosen = tidy[tidy["chosen"]] if "chosen" in tidy else tidy  # of many models, one predicts
    np.testing.assert_array_equal(fit.coef().to_numpy(), chosen["estimate"])
    for out in (tidy, glance):
        assert not out.columns.duplicated().any()


@models
def test_what_augment_adds_is_no_feature_of_the_next_fit(model):
    kind = contract_of(model).kinds[0]
    df = frame_of(model, kind)
    fit = model(FORMULA, df, **quick(model))
    augmented = fit.augment(df)
    added = [name for name in augmented if name not in df]
    again = model(FORMULA, augmented, **quick(model))
    assert again.design.names == fit.design.names and list(again.design.left_out) == added
    pd.testing.assert_series_equal(again.coef(), fit.coef())
    text, report = (" ".join(str(out).split()) for out in (again, again.summary()))
    assert f"({len(added)} columns left out of '.')" in text
    assert f"because augment() has added them: {', '.join(added[:2])}" in report
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


@pytest.mark.parametrize("model", some_long(MODELS, SLOW), ids=lambda m: m.__name__)
@pytest.mark.filterwarnings("ignore::lodim.ConvergenceWarning")
def test_what_chooses_its_settings_is_saved_and_loaded(model, tmp_path):
    kind = contract_of(model).kinds[0]
    df, open_, path = frame_of(model, kind), contract_of(model).open, tmp_path / "file"
    all_rows = ld.conformal(model, FORMULA, df, folds=2, **open_)
    half = ld.conformal(model, FORMULA, df, method="split", **open_)
    for name, result in {"cv+": all_rows, "split": half, "fit": all_rows.fit}.items():
        result.save(path)
        back = ld.load(path)
        assert str(back) == str(result) and str(back.summary()) == str(result.summary()), name
        pd.testing.assert_frame_equal(
            pd.DataFrame(back.predict(df)), pd.DataFrame(result.predict(df))
        )


@pytest.mark.long
@pytest.mark.parametrize(
    "model, kind",
    [(m, k) for m in MODELS for k in contract_of(m).kinds if "seed" not in contract_of(m).lacks],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_seed_and_threads(model, kind):
    df = frame_of(model, kind)
    one, two, other = (
        model(FORMULA, df, **contract_of(model).cheap | {"seed": s, "threads": t})
        for s, t in ((7, 1), (7, 2), (8, 1))
    )
    assert one.predict(df, "link").equals(two.predict(df, "link"))
    assert str(one) != "" and one.settings.seed == 7 and other.settings.seed == 8


@pytest.mark.parametrize("kind", ["text", "multinomial"])
@pytest.mark.parametrize("model", some_long(MODELS, SLOW), ids=lambda m: m.__name__)
def test_renamed_and_reordered_classes(model, kind):
    """Of values that repeat, so that distances and classes are tied; of proset, one batch."""
    cheap = contract_of(model).cheap | ({"n_batches": 1} if model is ld.proset else {})
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


@pytest.mark.long
@models
def test_data_is_left_alone(model):
    df = frame_of(model, "text")
    before = df.copy(deep=True)
    model(FORMULA, df, **contract_of(model).cheap).predict(df)
    pd.testing.assert_frame_equal(df, before)


@pytest.mark.long
@models
def test_other_frames(model):
    df = frame_of(model, "text").dropna()
    expected = model(FORMULA, df, **contract_of(model).cheap)
    as_dict = {name: df[name].tolist() for name in df}
    one = model(FORMULA, as_dict, **contract_of(model).cheap)
    np.testing.assert_allclose(one.predict(as_dict), expected.predict(df), rtol=1e-9)
    polars = pytest.importorskip("polars")
    pytest.importorskip("narwhals")
    pl = polars.DataFrame(as_dict)
    two = model(FORMULA, pl, **contract_of(model).cheap)
    np.testing.assert_array_equal(two.predict(pl), one.predict(as_dict))


# Refusals --------------------------------------------------------------------------------------


def penalized(value):
    return lambda model: bad(**{contract_of(model).penalty: value})(model)


def infinite(df):
    return df.assign(age=df["age"].where(df.index != 1005, np.inf))


REFUSED = {
    "no rows": (bad(lambda d: d[:0]), ld.DataError, "no rows"),
    "no rows left": (bad(lambda d: d.assign(age=np.nan)), ld.DataError, "'age' (in 80|is missing)"),
    "constant response": (bad(lambda d: d.assign(answer=3.0)), ld.DataError, "3 in every row"),
    "one class": (bad(lambda d: d.assign(answer="a")), ld.DataError, "one class only"),
    "missing response": (bad(lambda d: d.drop(columns="answer")), ld.FormulaError, "answer"),
    "text for a number": (
        bad(formula="answer ~ np.log(arm)"), ld.LodimError, "arm",
    ),
    "text response as gaussian": (
        bad(kind="text", family="gaussian"), ld.LodimError, "numbers|one of binomial",
    ),
    "three classes as binomial": (
        bad(kind="multinomial", family="binomial"), ld.DataError, "multinomial",
    ),
    "infinite feature": (bad(infinite), ld.DataError, "'age' .* is infinite in row 1005"),
    "infinite response": (
        bad(lambda d: d.assign(answer=d["answer"].where(d.index != 1001, -np.inf)),
            kind="gaussian"),
        ld.DataError, "'answer' .* is infinite",
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
    "no frame": (
        lambda m: m(FORMULA, [1, 2, 3], **contract_of(m).cheap), ld.DataError, "DataFrame",
    ),
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
    "negative weights": (bad(weights=-np.ones(N)), ld.DataError, "weights must be 0 or more"),
    "zero weights": (bad(weights=np.zeros(N)), ld.DataError, "zero"),
    "text weights": (bad(weights="arm"), ld.DataError, "weights"),
    "infinite offset": (bad(offset=np.full(N, np.inf)), ld.DataError, "offset is infinite"),
    "wide offset": (bad(offset=np.zeros((N, 2))), ld.DataError, "2 columns"),
    "unknown family": (bad(family="cauchy"), ld.ArgumentError, "binomial, multinomial"),
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
    "control key": (bad(control={"maxiter": 3}), ld.ArgumentError, "max_iter.*'maxiter'"),
    "control is no mapping": (bad(control=[("max_iter", 3)]), ld.ArgumentError, "control"),
    "control of an argument": (bad(control={"seed": 3}), ld.ArgumentError, "seed"),
    "standardize": (bad(standardize="yes"), ld.ArgumentError, "standardize"),
}  # fmt: skip


@models
@pytest.mark.parametrize("case", REFUSED)
def test_refused(model, case):
    if case == "no response" and contract_of(model).response_optional:
        pytest.skip("it takes a formula without a response")
    if case.startswith("penalty") and contract_of(model).penalty is None:
        pytest.skip("it has no penalty")
    call, error, words = REFUSED[case]
    if any(name in case.split() for name in contract_of(model).lacks):
        error, words = ld.ArgumentError, "has no argument"
    with pytest.raises(error, match=contract_of(model).other_words.get(case, words)):
        call(model)


@pytest.mark.parametrize(
    "model, case",
    [(m, case) for m in MODELS for case in contract_of(m).refused],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_refused_by_one_model(model, case):
    call, error, words = contract_of(model).refused[case]
    with pytest.raises(error, match=words):
        call(model)


@pytest.mark.long
@pytest.mark.parametrize(
    "model", [m for m in MODELS if contract_of(m).offset], ids=lambda m: m.__name__
)
def test_offset_at_predict(model):
    df = frame("gaussian")
    named, given_ = (
        model(FORMULA, df, offset=o, **contract_of(model).cheap) for o in ("o", df["o"].to_numpy())
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
    fit = fit_of(model, contract_of(model).kinds[0])
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
    if contract_of(model).classes_only and seed:
        labels = np.random.default_rng(seed).choice(["a", "b", "c"][: 1 + seed], len(df))
        return df.assign(y=labels)
    return df


def asked(model, seed, penalty):
    """Arguments of a fast fit, with a seed and one of the penalties, where the model has them."""
    contract = contract_of(model)
    arguments = {"seed": seed, "threads": 1, "control": contract.control, **contract.few_stages}
    if contract.penalty is not None:
        arguments[contract.penalty] = contract.penalties[penalty]
    return {name: value for name, value in arguments.items() if name not in contract.lacks}


def check_frame(model, df, seed, weighted, penalty):
    """Fit any frame: the model refuses it in words or answers its rows with finite numbers."""
    df = suited(model, df, seed)
    weights = np.random.default_rng(seed).integers(0, 3, len(df)) if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        warnings.simplefilter("ignore", ld.DataWarning)
        if weighted or df["y"].isna().any():  # rows that are not fitted may lie far from all others
            warnings.simplefilter("ignore", ld.ExtrapolationWarning)
        try:
            fit = model("y ~ .", df, weights=weights, **asked(model, seed, penalty))
        except ld.LodimError:
            return
        try:
            out, augmented = fit.predict(df, "link"), fit.augment(df)
        except ld.DataError as error:  # a level of rows alone that miss something else
            assert re.search("not a level of the training rows|too far", str(error))
            return
        assert len(out) == len(df)
        assert np.isfinite(out.dropna().to_numpy(float)).all()
        if contract_of(model).answers_all(fit):
            known = df.index
        elif contract_of(model).keeps_missing:
            known = df.index[fit.predict(df, "view").notna()]
        elif missing_of(model) == "indicator":
            known = df.index
        else:
            known = df.index[_known(fit, df).notna().all(axis=1)]
        if getattr(fit, "aliased", {}):  # rows that ask for what could not be estimated
            known = known.intersection(out.dropna().index)
        assert list(out.dropna().index) == list(known)  # the response is not needed
        assert str(fit) and str(fit.summary()) and len(augmented) == len(df)
        assert np.isfinite(fit.glance()["deviance"][0])


@models
@given(df=frames(), seed=st.integers(0, 3), weighted=st.booleans(),
       penalty=st.integers(0, 2))  # fmt: skip
@example(df=pd.DataFrame({"y": [0.0, 1.304819e-188]}), seed=0, weighted=False, penalty=0)
@example(df=pd.DataFrame({"x": [0, 0, 0, 0, 0, 2, 1], "y": [0, 0, 0, 0, 0, 0, 2]}),
         seed=1, weighted=True, penalty=0)  # fmt: skip
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_frame(model, df, seed, weighted, penalty):
    check_frame(model, df, seed, weighted, penalty)


@pytest.mark.long
@models
@given(df=frames(), seed=st.integers(0, 3), weighted=st.booleans(),
       penalty=st.integers(0, 2))  # fmt: skip
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_frames(model, df, seed, weighted, penalty):
    check_frame(model, df, seed, weighted, penalty)


@pytest.mark.long
@models
@given(df=frames(), seed=st.integers(0, 2))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_frame_by_default(model, df, seed):
    """What chooses its own settings survives odd folds too."""
    df = suited(model, df, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        warnings.simplefilter("ignore", ld.DataWarning)
        try:
            fit = model("y ~ .", df, **contract_of(model).open)
        except ld.LodimError:
            return
        try:
            out = fit.predict(df, "link")
        except ld.DataError as error:  # a level of rows alone that miss something else
            assert re.search("not a level of the training rows|too far", str(error))
            return
        assert np.isfinite(out.dropna().to_numpy(float)).all()
