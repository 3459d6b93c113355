"""Names in plots are shown as they are, in every kind of plot of every model."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from contract.cases import MODELS, contract_of
from lodim.plot.lettering import literal

pyplot = pytest.importorskip("matplotlib.pyplot")

NAMES = [
    "price_$", "tax_$", "$x$", r"$\frac$", "$", "a$b$c$", r"\$", "_hidden", "__", "_", "=1+1",
    "-2", "a\nb", "a\tb", "a\0b", "a\rb", "\x1b[31mred", "\u202eabc", "שלום", "مرحبا", "قِيمَة",
    "😀", "👩‍⚕️", "价格", "मूल्य", "ราคา", "விலை", "x" * 300, "é" * 300, "long name " * 30, "%s",
    "{x}", "a_b^c", "a\\b", r"\alpha", "<b>", "#1", " ", "a&b", "\u200b",
]  # fmt: skip
CLASSES = ["_no", "$yes$", "😀 perhaps" * 40]
every_kind = pytest.mark.parametrize(
    "model, kind", [(m, k) for m in MODELS for k in contract_of(m).plots],
    ids=lambda v: getattr(v, "__name__", v),
)  # fmt: skip
_fits = {}


def quoted(name):
    return f"Q({name!r})"


def frame(n_classes=3):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(90, len(NAMES))), columns=NAMES)
    code = np.digitize(df["$x$"] + df["_hidden"] + df["价格"] + df["x" * 300], [-0.8, 0.8])
    df["_kind $"] = np.array(CLASSES, object)[np.minimum(code, n_classes - 1)]
    return df


def fit_of(model):
    if model not in _fits:
        formula = f"{quoted('_kind $')} ~ ."
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ld.ConvergenceWarning)  # the classes may be separated
            _fits[model] = model(formula, frame(), **contract_of(model).drawn)
    return _fits[model]


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def texts(axes):
    figure = np.ravel(axes)[0].figure
    figure.savefig(io.BytesIO(), format="png", dpi=50)
    return [t for t in figure.findobj(lambda part: hasattr(part, "get_parse_math"))]


def drawn(model, kind):
    fit = fit_of(model)
    given = {"data": frame()} if kind in ("local", "drift", "shapley", "calibration") else {}
    return fit.plot(kind, **given)


@pytest.mark.long
@every_kind
def test_any_name_in_any_plot(model, kind):
    """Names that are maths, have no glyph, or fill the page raise nothing and warn of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        every = texts(drawn(model, kind))
    powers = [t for t in every if t.get_parse_math() and "mathdefault" not in t.get_text()]
    assert not [t for t in powers if "$" in t.get_text()]
    assert max(len(line) for t in every for line in t.get_text().split("\n")) <= 80


@pytest.mark.long
@pytest.mark.parametrize("format", ["pdf", "svg"])
def test_other_formats(format):
    axes = drawn(ld.gbmap, "effects")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        axes.figure.savefig(io.BytesIO(), format=format)


def test_dollars_are_shown():
    """The labels at the ticks of bars are the names, with their dollars."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(60, 2)), columns=["price_$", "tax_$"])
    df["y"] = df["price_$"]
    axes = ld.gbmap("y ~ .**2", df, m=1, lambda_=0.1).plot("effects")
    found = {t.get_text() for t in texts(axes)}
    assert {"price_$", "tax_$", "price_$:tax_$"} <= found


@pytest.mark.parametrize(
    "model, kind",
    [(ld.gbmap, "embedding"), (ld.proset, "map"), (ld.proset, "scatter"), (ld.melm, "view"),
     (ld.ripr, "view")],
    ids=lambda v: getattr(v, "__name__", v),
)  # fmt: skip
def test_classes_that_begin_with_an_underscore_are_in_the_legend(model, kind):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(60, 2)), columns=list("ab"))
    df["_k"] = np.where(df["a"] + df["b"] > 0, "_yes", "_no")
    figure = np.ravel(model("_k ~ a + b", df, **contract_of(model).drawn).plot(kind))[0].figure
    legends = figure.legends + [ax.get_legend() for ax in figure.axes if ax.get_legend()]
    said = [t.get_text() for made in legends for t in made.get_texts()]
    assert {"_yes", "_no"} <= {text.removeprefix("_k = ") for text in said}


def test_letters_without_a_glyph_are_boxes():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a价b", "c\td"])
    df["y"] = df["a价b"]
    axes = ld.gbmap("y ~ .", df, m=1, lambda_=0.1).plot("effects")
    assert {t.get_text() for t in axes.get_yticklabels()} == {"a□b", "c d"}


@pytest.mark.long
def test_texts_above_a_path_stay_what_they_are():
    """Texts at two ticks that say the same are not told apart."""
    axes = fit_of(ld.costnet).plot("path")
    above = axes.child_axes[0]
    assert not [t.get_text() for t in above.get_xticklabels() if "." in t.get_text()]


def test_what_a_user_has_written_stays():
    """Maths in the texts of given Axes is left alone, but what the plot writes is literal."""
    _, axes = pyplot.subplots(1, 2)
    axes[0].set_title(r"$\alpha$")
    axes[1].set_title(r"$\beta$")
    axes[0].set_xlabel(r"$\gamma$")
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(60, 2)), columns=["$a$", "b"]).assign(y=lambda d: d["$a$"])
    fit = ld.gbmap("y ~ .", df, m=1, lambda_=0.1)
    fit.plot("local", axes[0], data=df)
    assert not axes[0].title.get_parse_math() and not axes[0].xaxis.label.get_parse_math()
    assert axes[1].title.get_parse_math() and axes[1].get_title() == r"$\beta$"
    texts(axes)


@pytest.mark.long
def test_numbers_at_ticks_are_powers_of_ten():
    """matplotlib's own maths at the ticks of a logarithmic axis is drawn, not shown as code."""
    df = frame()
    axes = fit_of(ld.gbmap).plot("drift", data=df)
    texts(axes)
    ticks = [t for t in axes.get_xticklabels() if "mathdefault" in t.get_text()]
    assert ticks and all(t.get_parse_math() for t in ticks)


@pytest.mark.long
@pytest.mark.parametrize("ax", [3, "axes", [None], []], ids=repr)
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_what_are_no_axes(model, ax):
    with pytest.raises(ld.ArgumentError, match="ax must be matplotlib Axes"):
        fit_of(model).plot(None, ax)


@pytest.mark.long
def test_path_and_cross_validation():
    df = frame()
    names = " + ".join(map(quoted, NAMES[:12]))
    formula = f"{quoted('_kind $')} ~ {names}"
    path = ld.path(ld.gbmap, formula, df, n_lambda=3, m=1, threads=1)
    cv = ld.cv(ld.gbmap, formula, df, grid={"activation": ["softplus", "identity"], "m": [1, 2]},
               lambda_=0.1, folds=2)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts(path.plot())
        texts(cv.plot())


def test_learning_curves_of_any_name():
    df = ld.data("iris").sample(frac=1.0, random_state=0)
    learner = ld.active(ld.gbmap, "species ~ .", df[:30], df[30:60], test=df[60:90], m=1,
                        lambda_=0.1)  # fmt: skip
    measured = ld.learning_curves({"$a$ 价": learner, "_b": learner})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {t.get_text() for kind in ("curve", "winloss") for t in texts(measured.plot(kind))}
    assert {"$a$ □", "_b", "against _b", "$a$ □ wins"} <= found


def test_what_the_first_figure_sets_up_stays():
    """Jupyter's backend then turns interaction on, and without it shows no further figure."""

    @literal
    def draw(thing, ax):
        pyplot.ion()
        return pyplot.subplots()[1]

    before = pyplot.isinteractive()
    try:
        draw(None)
        assert pyplot.isinteractive()
        assert pyplot.rcParams["text.parse_math"]
    finally:
        (pyplot.ion if before else pyplot.ioff)()


def test_maths_is_back_where_a_plot_fails():
    @literal
    def draw(thing, ax):
        raise ValueError

    with pytest.raises(ValueError):
        draw(None)
    assert pyplot.rcParams["text.parse_math"]
