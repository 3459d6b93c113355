"""Words that reports share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodim.text import feature_columns, ranges, shorten


@pytest.mark.parametrize(
    "names, room, expected",
    [
        (["hue", "ash"], 8, ["hue", "ash"]),
        (["a rather long name", "ash"], 9, ["a rath...", "ash"]),
        ([f"complication {k}" for k in (1, 2)], 10, ["compli...1", "compli...2"]),
        (["x" * 40, "x" * 40 + "b"], 8, ["xxxx...", "xxxx...b"]),
        (["sepal_length", "sepal_width"], 9, ["se...ngth", "se...idth"]),
        (["sepal_length (cm)", "sepal_width (cm)"], 9, ["se...leng", "se...widt"]),
        (
            ["bs(weight, df=4)[0]", "bs(weight, df=4)[1]", "a"],
            19,
            ["bs(weight, df=4)[0]", "bs(weight, df=4)[1]", "a"],
        ),
        (
            ["bs(weight, df=4)[0]", "bs(weight, df=4)[1]:origin[US]"],
            25,
            ["bs(weight)[0]", "bs(weight)[1]:origin[US]"],
        ),
        (
            ["te(cr(weight, df=3), cr(horsepower, knots=[1, 2]))[0]"],
            32,
            ["te(weight, horsepower)[0]"],
        ),
        (["aaaaaaaaaaaaXXXXX1"] * 2, 10, ["aa...aaXXX", "aa...a (2)"]),
        (
            ["bs(weight, df=4)[0]", "bs(weight, df=5)[0]"],
            15,
            ["bs(weig...4)[0]", "bs(weig...5)[0]"],
        ),
    ],
)
def test_names_are_cut_where_they_are_alike(names, room, expected):
    assert shorten(names, room) == expected


@given(st.lists(st.text("ab .", max_size=40), unique=True, max_size=12), st.integers(12, 30))
def test_different_names_stay_different_in_the_room_there_is(names, room):
    short = shorten(names, room)
    assert len(set(short)) == len(names) and max(map(len, short), default=0) <= room


@given(st.lists(st.text("ab .", max_size=40), unique=True, max_size=9), st.integers(1, 11))
def test_names_are_never_longer_than_the_room(names, room):
    assert max(map(len, shorten(names, room)), default=0) <= room


@pytest.mark.parametrize("room, expected", [(4, "hu…1 hu…2"), (3, "h…1 h…2"), (2, "…1 …2")])
def test_names_in_little_room_stay_different(room, expected):
    assert shorten(["hue of wine 1", "hue of wine 2"], room) == expected.split()


@given(st.lists(st.text("a", max_size=2), unique=True), st.lists(st.text("a", max_size=2)))
def test_columns_of_features_are_not_among_those_that_a_table_has(names, taken):
    features = [*names, *(f"{name} (feature)" for name in names)]
    columns = feature_columns(features, taken)
    assert len({*columns, *taken}) == len(features) + len({*taken})
    assert [new for new, old in zip(columns, features, strict=True) if old not in taken] == [
        name for name in features if name not in taken
    ]


@pytest.mark.parametrize(
    "numbers, expected",
    [([], ""), ([4], "4"), ([1, 2], "1, 2"), ([1, 2, 3, 5, 8, 9, 10, 11], "1 to 3, 5, 8 to 11")],
)
def test_three_numbers_in_a_row_are_a_range(numbers, expected):
    assert ranges(numbers) == expected
