"""The report page of a fit, in a browser: what it shows, and what it predicts."""

import json
import shutil
import subprocess
import warnings
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.cli import main
from lodim.design import frame
from lodim.export import javascript
from lodim.page import Picture, charts, page, sections
from lodim.page.inputs import Repeated, columns_of, from_data, from_design
from lodim.page.page import html

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run", "--dump-dom",
         "--virtual-time-budget=20000")  # fmt: skip
LARGEST = 1_500_000  # bytes of a page of a small data set
browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed to open pages with")
WATCH = """<script>
window.faults = [];
window.addEventListener("error", (event) => faults.push(String(event.message)));
window.addEventListener("unhandledrejection", (event) => faults.push(String(event.reason)));
document.addEventListener("securitypolicyviolation", (event) => faults.push(event.blockedURI));
console.error = console.warn = (...words) => faults.push(words.join(" "));
</script>"""
ASK = """<script type="module">
const rows = %s, form = document.getElementById("inputs"), answers = [];
const event = () => new Event("input", {bubbles: true});
for (const row of rows) {
  const page = JSON.parse(document.getElementById("page").textContent);
  page.inputs.forEach((input, k) => {
    const box = form.children[k];
    const list = box.querySelector("select"), exact = box.querySelector("input[type=number]");
    if (list) {
      list.selectedIndex = input.levels.indexOf(row[k]);
      list.dispatchEvent(new Event("change"));
    } else {
      exact.value = row[k] === null ? "" : row[k];
      exact.dispatchEvent(event());
    }
  });
  answers.push([...document.querySelectorAll("#answer b")].map((b) => b.dataset.value));
}
const slider = document.querySelector("#inputs input[type=range]"), moved = [];
if (slider) {
  for (const end of [slider.min, slider.max]) {
    slider.value = end;
    slider.dispatchEvent(event());
    moved.push([slider.value, slider.parentNode.querySelector("input[type=number]").value,
                document.querySelector("#answer b").dataset.value]);
  }
}
const found = {
  answers, moved, faults: window.faults, charts: document.querySelectorAll(".chart svg").length,
  drawn: document.body.dataset.drawn, hacked: window.hacked === undefined ? 0 : 1,
  requests: performance.getEntriesByType("resource").length,
  width: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  labels: [...document.querySelectorAll("#inputs label")].map((l) => l.firstChild.textContent),
  options: [...document.querySelectorAll("#inputs option")].map((o) => o.textContent),
  classes: [...document.querySelectorAll("#answer span")].map((s) => s.textContent),
};
document.body.append(Object.assign(document.createElement("pre"), {id: "found",
  textContent: "FOUND" + JSON.stringify(found) + "END"}));
</script>"""


def opened(path, rows=(), size="1280,900"):
    """What a browser finds in a page, after it has set the columns to each of some rows."""
    text = path.read_text(encoding="utf-8")
    text = text.replace("<title>", WATCH + "<title>", 1)
    where = path.with_name(f"watched_{path.name}")
    asked = ASK % json.dumps(list(rows)).replace("<", "\\u003c")
    before, end, after = text.rpartition("</body>")
    where.write_text(before + asked + end + after, encoding="utf-8")
    profile = path.with_name("profile")
    run = subprocess.run(
        [CHROMIUM, *FLAGS, f"--window-size={size}", f"--user-data-dir={profile}", where.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    dumped = run.stdout.rpartition("FOUND")[2].partition("END")[0]
    assert dumped, run.stdout[-2000:] + run.stderr[-2000:]
    return json.loads(unescape(dumped))


def rows_of(fit, data, at):
    """Values of the columns of some rows, as JSON has them."""
    names = columns_of(fit.design)
    return [[None if pd.isna(v) else v for v in row]
            for row in data.iloc[at][names].astype(object).values.tolist()]  # fmt: skip


CARS = ld.data("autompg")
FITS = {
    "gbmap": (ld.gbmap, "mpg ~ .", CARS, {"m": 4, "lambda_": 0.05}),
    "proset": (ld.proset, "disease ~ .", ld.data("heart"), {"lambda_v": 0.03}),
    "costnet": (ld.costnet, "mpg ~ bs(weight, df=4) + np.log(horsepower) + origin", CARS, {}),
    "melm": (ld.melm, "cultivar ~ .", ld.data("wine"), {"gamma": 1.0, "n_starts": 2}),
    "glm": (ld.glm, "mpg ~ weight * origin", CARS, {}),
    "offset": (
        ld.glm,
        "cylinders ~ weight + C(model_year)",
        CARS,
        {"family": "poisson", "offset": "acceleration"},
    ),
}


@pytest.mark.long
@browser
@pytest.mark.parametrize("name", FITS)
def test_the_page_predicts_what_the_fit_does(name, tmp_path):
    model, formula, data, settings = FITS[name]
    fit = model(formula, data, **settings)
    fit.report(tmp_path / "page.html", data)
    assert (tmp_path / "page.html").stat().st_size < LARGEST
    at = [0, 17, 32, 101, 166]  # rows 32 of the cars and 166 of the patients have gaps
    found = opened(tmp_path / "page.html", rows_of(fit, data, at))
    told = fit.predict(data.iloc[at], "prob" if fit.levels else "response").to_numpy()
    told = told.reshape(len(at), -1)
    got = np.array([[float(v) for v in row] for row in found["answers"]])
    np.testing.assert_allclose(got, told, rtol=1e-9, atol=1e-9)
    assert (found["faults"], found["requests"], found["hacked"]) == ([], 0, 0)
    assert found["charts"] == int(found["drawn"]) > 3 and found["labels"] == columns_of(fit.design)
    slid = data.iloc[[at[-1]] * 2].copy()
    slid[_first_number(fit)] = [float(value) for _, value, _ in found["moved"]]
    want = fit.predict(slid, "prob" if fit.levels else "response").to_numpy().reshape(2, -1)[:, 0]
    np.testing.assert_allclose([float(v) for *_, v in found["moved"]], want, rtol=1e-9, atol=1e-9)


def _first_number(fit):
    return next(column.name for column in from_design(fit.design) or from_data(fit.design, CARS)
                if column.levels is None)  # fmt: skip


HOSTILE = (
    "</script><script>hacked = 1</script>",
    "'\"`${hacked = 1}\\",
    "<b onclick=x>&amp;",
    "a.b[0]",
)


@browser
def test_no_name_of_the_data_is_run(tmp_path):
    rng = np.random.default_rng(0)
    levels, n = [f"{name} {k}" for k, name in enumerate(HOSTILE)], 60
    data = pd.DataFrame({name: rng.normal(size=n) for name in HOSTILE})
    data["<i>kind"] = np.resize(levels, n)
    data["<img src=x>"] = np.where(data[HOSTILE[0]] + rng.normal(size=n) > 0, HOSTILE[0], "no")
    fit = ld.glm("Q('<img src=x>') ~ .", data)
    fit.report(tmp_path / "page.html", data)
    found = opened(tmp_path / "page.html", rows_of(fit, data, [0, 1]), size="390,844")
    assert (found["faults"], found["requests"], found["hacked"]) == ([], 0, 0)
    assert {*found["labels"]} == {*HOSTILE, "<i>kind"} and found["options"] == sorted(levels)
    assert found["classes"] == [HOSTILE[0], "no"] and found["width"] <= 0
    told = fit.predict(data.iloc[:2], "prob").to_numpy()
    np.testing.assert_allclose(np.array(found["answers"], float), told, rtol=1e-9)


def test_a_page_without_data(tmp_path):
    fit = ld.glm("mpg ~ weight + origin", CARS)
    fit.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What if" in text and "How well it fits" not in text
    inputs = {column.name: column for column in from_design(fit.design)}
    mean, sd = CARS["weight"].mean(), CARS["weight"].std(ddof=0)
    np.testing.assert_allclose(
        [inputs["weight"].low, inputs["weight"].high], [mean - 2 * sd, mean + 2 * sd]
    )
    assert inputs["origin"].levels == ("Europe", "Japan", "USA")
    ld.glm("mpg ~ np.log(weight)", CARS).report(tmp_path / "page.html")
    assert "no data were given" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_a_page_of_ripr_says_why_it_does_not_predict(tmp_path):
    data = ld.data("seeds")
    ld.ripr("variety ~ .", data, max_dim=2, k=5).report(tmp_path / "page.html", data)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "There is no prediction by hand here: " in text and "View: " in text


def test_names_of_the_data_that_the_page_has_too():
    rng = np.random.default_rng(0)
    names = ["row", "cluster", "fitted", "embedding f1", "view x1", "prediction"]
    data = pd.DataFrame(rng.normal(size=(60, 6)), columns=names, index=[0] * 60)
    data["residual"] = data["row"] + data["cluster"]
    data["class"] = np.where(data["residual"] > 0, "yes", "no")
    fits = [
        ld.ripr("residual ~ row + cluster", data, max_dim=2, k=5),
        ld.ripr("~ row + cluster", data, n_clusters=2),
        ld.gbmap("residual ~ row + fitted + Q('embedding f1')", data, m=2, lambda_=0.1),
        ld.melm("Q('class') ~ row + cluster + Q('view x1')", data, gamma=1.0, n_starts=1),
    ]
    for fit in fits:
        planes = [p for p in fit._pictures(data) if p.mark == "points"]
        assert planes
        for plane in planes:
            pd.testing.assert_frame_equal(plane.frame[[*data]], data)
            charts.chart(plane)
        if fit.name != "ripr":
            seen = fit.predict(data, "embedding" if fit.name == "gbmap" else "projection")
            np.testing.assert_array_equal(plane.frame[[plane.x, plane.y]], seen.iloc[:, :2])
    (residuals,) = sections.accuracy(fits[0], data)
    fitted = fits[0].predict(data)
    np.testing.assert_array_equal(residuals.frame[residuals.x], fitted)
    np.testing.assert_allclose(residuals.frame[residuals.y], data["residual"] - fitted)


def test_an_effect_of_a_column_called_as_an_argument_of_pandas():
    cars = ld.data("autompg")
    frames = []
    for data in (cars, cars.rename(columns={"weight": "self"})):
        fit = ld.glm(f"mpg ~ {data.columns[4]}", data)
        (picture,), _ = sections.effects(fit, from_data(fit.design, data), data)
        frames.append(picture.frame)
    np.testing.assert_array_equal(*frames)


def test_many_classes_do_not_look_alike():
    n = 40
    levels = [f"class {k:02d}" for k in range(n)] * 3
    frame = pd.DataFrame({"x": np.arange(3.0 * n), "y": 1.0, "class": levels})
    for mark, channel in (("points", "shape"), ("lines", "strokeDash")):
        spec = charts.chart(Picture("", mark, frame, "x", "y", color="class"))
        looks = [spec["encoding"][name]["scale"] for name in ("color", channel)]
        assert looks[0]["domain"] == looks[1]["domain"] == levels[:n]
        assert len({*zip(looks[0]["range"], map(str, looks[1]["range"]), strict=True)}) == n
    few = charts.chart(Picture("", "points", frame[frame["class"] < "class 08"], "x", "y",
                               color="class"))  # fmt: skip
    assert "shape" not in few["encoding"]


@pytest.mark.long
def test_rows_with_labels_of_several_levels(tmp_path):
    data = CARS.set_index([np.arange(len(CARS)), np.arange(len(CARS))[::-1]])
    ld.glm("mpg ~ weight", data).report(tmp_path / "page.html", data)
    assert "(0, " in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_page_says_that_weights_do_not_enter_its_pictures(tmp_path):
    for weights, said in ((None, 0), ("cylinders", 2)):
        ld.glm("mpg ~ weight", CARS, weights=weights).report(tmp_path / "page.html", CARS)
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert text.count("Each row counts once in these pictures") == said


def test_an_embedding_of_one_learner_is_not_drawn(tmp_path):
    data = pd.DataFrame({"x": np.arange(30.0), "y": np.arange(30.0)})
    fit = ld.gbmap("y ~ x", data, m=2, lambda_=0.1, l1_ratio=1.0)
    assert fit.predict(data, "embedding").shape[1] == 1
    fit.report(tmp_path / "page.html", data)


def test_an_infinite_number_is_no_end_of_a_range():
    data = CARS.assign(weight=CARS["weight"].astype(float).where(CARS.index > 0, np.inf))
    (weight,) = from_data(ld.glm("mpg ~ weight", CARS).design, data)
    assert np.isfinite([weight.low, weight.high]).all()


def test_classes_that_are_numbers_stand_in_their_order():
    data = CARS.assign(size=CARS["cylinders"].replace({3: 4, 5: 12}))
    fit = ld.glm("size ~ weight", data, family="multinomial")
    data.loc[0, "size"] = np.nan
    (picture,) = sections.accuracy(fit, data)
    found = picture.frame.set_index(["observed", "predicted"])["rows"].unstack()
    assert [*found.index] == [*found.columns] == ["4", "6", "8", "12"]
    told = fit.predict(data, "class")
    for a in fit.levels:
        for b in fit.levels:
            assert found.loc[str(a), str(b)] == ((data["size"] == a) & (told == b)).sum()


@pytest.mark.long
@pytest.mark.parametrize("model", ["ripr", "melm"])
def test_a_page_without_a_response(model, tmp_path):
    data = ld.data("wine").drop(columns="cultivar")
    getattr(ld, model)("~ .", data).report(tmp_path / "page.html", data)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What each column does" not in text and "The model" in text


@pytest.mark.long
def test_a_category_that_is_missing_in_the_rows_to_show(tmp_path):
    fit = ld.glm("mpg ~ weight + origin", CARS, missing="indicator")
    data = CARS.assign(origin=None)
    assert from_data(fit.design, data)[1].levels == ("Europe", "Japan", "USA")
    fit.report(tmp_path / "page.html", data)
    fit.report(tmp_path / "page.html", data.assign(mpg=np.nan))  # nothing to compare with


def test_what_cannot_be_written(tmp_path, monkeypatch):
    fit = ld.glm("mpg ~ weight", CARS)
    for path in (tmp_path, tmp_path / "no" / "page.html", "a\0b", None):
        with pytest.raises(ld.StoreError, match="the report cannot be written"):
            fit.report(path)
    with pytest.raises(ld.DataError, match="'weight'"):
        fit.report(tmp_path / "page.html", CARS.drop(columns="weight"))
    with pytest.raises(ld.DataError, match="at least one row"):
        fit.report(tmp_path / "page.html", CARS.iloc[:0])
    moved = ld.glm("mpg ~ weight", CARS, offset=np.ones(len(CARS)))
    with pytest.raises(ld.ArgumentError, match="an array as offset"):
        moved.report(tmp_path / "page.html", CARS)
    moved.report(tmp_path / "page.html")

    def missing():
        raise ld.MissingExtraError("a report page needs altair: pip install 'lodim[report]'")

    monkeypatch.setattr(charts, "libraries", missing)
    with pytest.raises(ld.MissingExtraError, match=r"lodim\[report\]"):
        fit.report(tmp_path / "page.html")


def test_from_the_command_line(tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["glm", "mpg ~ weight", "autompg", "--report", str(page)]) == 0
    assert "How well it fits" in Path(page).read_text(encoding="utf-8")


@pytest.mark.long
def test_pictures_of_columns_that_javascript_knows_otherwise(capfd):
    """Names of what every object has, ends of lines and quotes: no picture is lost."""
    converter, rng, n = pytest.importorskip("vl_convert"), np.random.default_rng(0), 60
    names = ["constructor", "toString", "a\nb", "a\u2028b", "a\\", 'a\\"b']
    data = pd.DataFrame({name: rng.normal(size=n) for name in names})
    data["hasOwnProperty"] = np.resize(["__proto__", "valueOf", "w"], n)
    data["__proto__"] = np.where(data["constructor"] + rng.normal(size=n) > 0, "toString", "no")
    fit = ld.glm("Q('__proto__') ~ .", data)
    groups, _ = page._pictures(fit, from_data(fit.design, data), data)
    pictures = [picture for group in groups.values() for picture in group]
    assert len(pictures) > len(names)
    for picture in pictures:
        drawn = converter.vegalite_to_svg(charts.chart(picture))
        assert drawn.count("graphics-symbol") > 1
    assert "ERROR" not in capfd.readouterr().err


def test_a_costnet_of_one_penalty_has_a_page(tmp_path):
    fit = ld.costnet("mpg ~ weight + acceleration", CARS, lambda_=0.02)
    fit.report(tmp_path / "page.html", CARS)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "one penalty" in text and "Coefficients" in text and "Frontier" not in text


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    fit, path = ld.glm("mpg ~ weight", CARS), tmp_path / "page.html"
    path.write_text("old")

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ld.StoreError, match="No space left"):
        fit.report(path)
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "old"


def test_a_program_that_cannot_be_made_is_an_error(tmp_path, monkeypatch):
    fails = tmp_path / "python"
    fails.write_text("#!/bin/sh\nkill -TRAP $$\n")
    fails.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(fails))
    charts.program.cache_clear()
    with pytest.raises(ld.StoreError, match=r"vl-convert.* ended with code -5"):
        ld.glm("mpg ~ weight", CARS).report(tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.long
def test_the_page_says_how_well_the_fit_predicts_its_data():
    fit = ld.glm("mpg ~ weight", CARS)
    r2 = fit.evaluate(CARS)["dev_ratio"].item()
    assert f"On 398 rows of the data: R² {r2:.3g}, RMSE 4.33." in html(fit, CARS)
    classes = ld.glm("size ~ weight", CARS.assign(size=CARS["mpg"] > 20), family="binomial")
    text = sections.figures(classes, CARS.assign(size=CARS["mpg"] > 20))
    assert "accuracy 0." in text and "log-loss 0." in text
    area = classes.evaluate(CARS.assign(size=CARS["mpg"] > 20))["auc"].item()
    assert f"AUC {area:.3g}. If" in text


@pytest.mark.filterwarnings("ignore:The model fits the response exactly")
def test_a_column_of_two_values_has_two_points_and_a_level_effect_no_picture():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"binary": rng.integers(0, 2, 80).astype(float), "none": rng.random(80)})
    data["y"] = data["binary"] + 1e-3 * data["none"]
    fit = ld.glm("y ~ binary + none", data)
    (picture,), hidden = sections.effects(fit, from_data(fit.design, data), data)
    assert (picture.mark, [*picture.frame["binary"]]) == ("points", ["0", "1"])
    assert hidden == ["none"]


def test_a_legend_of_long_names_has_few_columns():
    frame = pd.DataFrame({"x": np.arange(9.0), "y": 0.5})
    columns = {}
    for length in (1, 12, 60):
        frame["class"] = [f"{k}".rjust(length, "c") for k in range(9)]
        spec = charts.chart(Picture("", "points", frame, "x", "y", color="class"))
        columns[length] = spec["config"]["legend"]["columns"]
    assert columns == {1: 8, 12: 2, 60: 1}


def test_headings_of_tidy_are_in_words():
    fit = ld.glm("mpg ~ weight + horsepower", CARS)
    (picture,) = fit._pictures(None)
    axis = charts.chart(picture)["layer"][1]["encoding"]["x"]["title"]
    assert axis == "coefficient" and picture.hover == ("standard error", "p-value")
    assert not any("_" in name for name in picture.frame.columns)


def test_effects_do_not_warn_of_rows_that_the_page_makes():
    cars = ld.data("autompg")
    fit = ld.gbmap("mpg ~ .", cars, m=4, lambda_=0.01, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sections.effects(fit, from_data(fit.design, cars), cars)


@pytest.mark.long
def test_the_page_has_checks_limits_held_out_figures_and_ticks():
    fit = ld.gbmap("mpg ~ weight + origin", CARS, seed=1, threads=1)
    inputs = from_data(fit.design, CARS)
    pictures, _ = sections.effects(fit, inputs, CARS)
    rugs = {picture.title: picture.rug for picture in pictures}
    assert rugs["origin"] == () and rugs["weight"][9] == CARS["weight"].median()
    ticks = charts.chart(next(p for p in pictures if p.rug))["layer"][1]
    assert len(ticks["data"]["values"]) == 19
    tried = fit.selection[np.isclose(fit.selection["mean"], fit._held_out_deviance())].iloc[0]
    low, high = (1 - (tried["mean"] + k * 1.96 * tried["se"])
                 / CARS["mpg"].var(ddof=0) for k in (1, -1))  # fmt: skip
    assert f"95% interval {low:.3g} to {high:.3g}" in sections.figures(fit, CARS)
    text = html(fit, CARS)
    assert "<li>No findings.</li>" in text and "398 training rows" in text
    tied = ld.glm(
        "mpg ~ weight + double", CARS.assign(double=2 * CARS["weight"] + 1e-6 * CARS["mpg"])
    )
    assert "copies: " in sections.findings(tied, CARS.assign(double=2 * CARS["weight"]))[0]


def test_the_page_says_what_is_predicted():
    fit = ld.glm("mpg ~ weight", CARS, family="quantile", quantile=0.9)
    assert "A prediction on this page is the quantile 0.9." in " ".join(sections.limits(fit))
    assert "is a mean or a probability." in " ".join(sections.limits(ld.glm("mpg ~ weight", CARS)))


def test_effects_read_each_column_of_the_data_once(monkeypatch):
    p, rng = 30, np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(60, p)), columns=[f"x{j}" for j in range(p)])
    df["y"] = df["x0"] + rng.normal(size=60)
    fit, read = ld.glm("y ~ .", df), []
    columns = from_data(fit.design, df)
    make = frame.to_column
    monkeypatch.setattr(frame, "to_column", lambda *a: read.append(a[1]) or make(*a))
    pictures, _ = sections.effects(fit, columns, df)
    assert pictures
    # once as it is, and once with the values of the picture
    assert len(read) == p + sections.MOST_EFFECTS


@pytest.mark.parametrize("model", [ld.glm, ld.gbmap, ld.proset, ld.costnet, ld.ripr])
def test_effects_are_computed_for_the_columns_with_the_largest_estimates(model, monkeypatch):
    cars, predicted = ld.data("autompg").drop(columns="horsepower"), []
    fit = model("mpg ~ .", cars)
    assert "with the largest estimates" not in html(fit, cars)
    monkeypatch.setattr(sections, "MOST_EFFECTS", 2)
    inputs, at = from_data(fit.design, cars), Repeated.at
    monkeypatch.setattr(
        Repeated, "at", lambda self, *a: predicted.append(a[0].name) or at(self, *a)
    )
    pictures, _ = sections.effects(fit, inputs, cars)
    assert len(predicted) == 2 and {"weight", "model_year"} >= {p.title for p in pictures}
    assert "Computed for 2 of 6 columns, those with the largest estimates." in html(fit, cars)


def test_the_effect_of_an_offset_is_computed(monkeypatch):
    monkeypatch.setattr(sections, "MOST_EFFECTS", 1)
    data = ld.data("autompg").assign(base=1.0)
    fit = ld.glm("mpg ~ weight + model_year", data, offset="base")
    assert [one.name for one in sections._used_most(fit, from_data(fit.design, data))] == ["base"]


def test_charts_hold_only_the_columns_that_they_show():
    rows = pd.DataFrame({"x": [1.0, 2.0], "hidden": [3.0, 4.0], "y": [5.0, 6.0]})
    spec = charts.chart(Picture("", "points", rows, "x", "y"))
    assert spec["data"]["values"] == [{"c0": 1.0, "c2": 5.0}, {"c0": 2.0, "c2": 6.0}]


@pytest.mark.parametrize(
    "fit",
    [
        lambda data: ld.glm("mpg ~ 1", data),
        lambda data: ld.glm("origin ~ weight", data),
        lambda data: ld.proset("mpg ~ weight + model_year", data, lambda_v=1e-3),
        lambda data: ld.proset("mpg ~ weight", data, lambda_v=1e3),
        lambda data: ld.ripr("heavy ~ origin + cylinders", data, min_dim=2, max_dim=2, k=5),
        lambda data: ld.melm("heavy ~ mpg + cylinders", data, gamma=1.0, k=2),
        lambda data: ld.gbmap("mpg ~ weight + horsepower", data, m=2, lambda_=0.1),
    ],
    ids=["no terms", "classes", "proset", "nothing", "ripr", "melm", "gbmap"],
)
@pytest.mark.parametrize("shown", [True, False])
def test_pictures_of_each_model(fit, shown):
    data = CARS.assign(heavy=CARS["weight"] > 2800, origin=CARS["origin"].astype(str))[::2]
    fit = fit(data)
    assert fit._in_words()
    pictures = fit._pictures(data if shown else None)
    assert len({picture.title for picture in pictures}) == len(pictures)
    if fit.design.n_incomplete:
        missing = str(data["horsepower"].isna().sum())
        assert sections.facts(fit)["rows with missing values, filled in"] == missing


def test_a_page_of_many_terms_of_bools_and_of_columns_without_values(tmp_path):
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 41))).add_prefix("v")
    fit = ld.glm("v0 ~ . ", data)
    assert "The first 30 of 40" in fit._pictures(data)[0].note
    data["flag"] = data["v1"] > 0
    fit = ld.gbmap("v0 ~ v1 + v2", data, m=2, lambda_=0.1)
    fit.report(tmp_path / "page.html", data.assign(v1=np.nan))
    with pytest.raises(ld.DataError, match="two columns of the data are called 'v1'; rename one"):
        fit.report(tmp_path / "page.html", pd.concat([data, data[["v1"]]], axis=1))


def test_prototypes_are_a_table_of_the_program():
    fit = ld.proset("mpg ~ weight + model_year", CARS, lambda_v=1e-3)
    program = javascript.write(fit._equation("error"))
    assert program.count("\n  [") >= len(fit.estimates.w) > 1


def test_bools_are_text_in_charts():
    assert charts._plain(True) == "True" and charts._plain(np.nan) is None
