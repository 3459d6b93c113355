"""store: every state comes back bit for bit; every damaged file is refused in words."""

import hashlib
import json
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lodim.errors import StoreError
from lodim.fitting import storage as store

DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(sizes=(64, 128)),
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=3))
KEYS = st.text(max_size=5) | st.sampled_from(["$array", "$float", "$", "$$array"])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), ARRAYS)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def bits(value):
    """A form in which equal means equal type and equal bits."""
    if isinstance(value, np.ndarray):
        return ("array", value.dtype, value.shape, value.tobytes())
    if isinstance(value, float):
        return ("float", struct.pack(">d", value))
    if isinstance(value, list | tuple):
        return ["list", *map(bits, value)]
    if isinstance(value, dict):
        return {k: bits(v) for k, v in value.items()}
    return (type(value), value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.lodim"


@pytest.fixture
def saved(path):
    state = {"w": np.arange(6.0).reshape(2, 3), "names": ["a", "b"], "beta": 5.0, "n": [1, 2]}
    store.write(path, "gbmap", state)
    return path


def forge(path, members):
    """A file of these members with checksums made right."""
    members = {
        name: content if isinstance(content, bytes) else json.dumps(content).encode()
        for name, content in members.items()
    }
    pack(path, members | {store.SUMS: store._sums(members)})


def pack(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def parts(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


META = {"format": 1, "lodim": "0.1.0", "kind": "gbmap"}


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(state=st.dictionaries(KEYS, VALUES, max_size=4), kind=st.text(max_size=8))
def test_round_trip_keeps_every_bit(tmp_path_factory, state, kind):
    path = tmp_path_factory.getbasetemp() / "round.lodim"
    store.write(path, kind, state)
    found, back = store.read(path)
    assert found == kind
    assert bits(back) == bits(state)


def test_floats_at_the_edge(path):
    floats = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 0.1 + 0.2, struct.unpack(">d", b"\xff" * 8)[0]]
    store.write(path, "k", {"f": floats, "a": np.array(floats)})
    _, back = store.read(path)
    assert bits(back) == bits({"f": floats, "a": np.array(floats)})


def test_tuples_become_lists_and_numpy_scalars_python(path):
    state = {"t": (1, (2.5,)), "i": np.int32(3), "f": np.float32(0.5), "b": np.True_}
    store.write(path, "k", state)
    assert store.read(path)[1] == {"t": [1, [2.5]], "i": 3, "f": 0.5, "b": True}


def test_order_of_memory_and_of_keys_is_kept(path):
    store.write(path, "k", {"z": np.asfortranarray(np.eye(3)[:, :2]), "a": np.eye(4)[::2, ::2]})
    _, back = store.read(path)
    assert list(back) == ["z", "a"]
    assert back["z"].flags.f_contiguous and back["z"].flags.writeable
    np.testing.assert_array_equal(back["a"], np.eye(4)[::2, ::2])


def test_equal_states_make_equal_files(tmp_path):
    for name in ("one", "two"):
        store.write(tmp_path / name, "k", {"a": np.arange(5)})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_layout_of_the_file(saved):
    members = parts(saved)
    assert sorted(members) == ["SHA256SUMS", "arrays/0.npy", "meta.json", "state.json"]
    meta = json.loads(members["meta.json"])
    assert meta["format"] == 1 and meta["kind"] == "gbmap" and meta["lodim"]
    assert json.loads(members["state.json"])["w"] == {"$array": 0}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([object()]), r"state\['x'\] is an array of object"),
        (np.array(["text"]), "only numbers and bool"),
        (np.array(["2020"], "M8[D]"), "only numbers and bool"),
        (np.zeros(2, "f8,i4"), "only numbers and bool"),
        (np.ma.masked_array([1.0], [True]), "masked array"),
        (1 + 2j, "complex, which cannot be saved"),
        (b"bytes", "bytes, which cannot be saved"),
        ({"s": {1, 2}}, r"state\['x'\]\['s'\] is a set"),
        ([0, lambda: 1], r"state\['x'\]\[1\] is a function"),
        ({1: "one"}, r"state\['x'\] has the key 1; keys must be text"),
        pytest.param(10**5000, "cannot be saved", id="huge"),
    ],
)
def test_refuses_what_it_cannot_save_and_says_where(path, value, words):
    with pytest.raises(StoreError, match=words):
        store.write(path, "k", {"x": value})
    assert not path.exists()


def test_refuses_a_state_that_contains_itself(path):
    state = {}
    state["self"] = state
    with pytest.raises(StoreError, match="contains itself"):
        store.write(path, "k", state)


def test_refuses_wrong_arguments(path):
    with pytest.raises(StoreError, match="kind as text and state as a dict"):
        store.write(path, 3, {})
    with pytest.raises(StoreError, match="kind as text and state as a dict"):
        store.write(path, "k", [])


def test_a_failed_write_leaves_the_old_file_and_nothing_else(saved, monkeypatch):
    before = saved.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(StoreError, match="cannot be written: No space left"):
        store.write(saved, "gbmap", {"x": 1})
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_writing_replaces_and_leaves_no_temporary(saved):
    store.write(saved, "proset", {"x": 1})
    assert store.read(saved) == ("proset", {"x": 1})
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.parametrize("target", ["missing/fit.lodim", "fit.lodim/below", ""])
def test_says_that_it_cannot_be_written(saved, target):
    with pytest.raises(StoreError, match=r"cannot be written|cannot be|exist"):
        store.write(saved.parent / target, "k", {})
    with pytest.raises(StoreError, match="not the name of a file"):
        store.write("", "k", {})


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(StoreError, match="is not the name of a file"):
        store.write(name, "k", {})
    with pytest.raises(StoreError, match="is not the name of a file"):
        store.read(name)


def test_no_such_file_and_directory(tmp_path):
    with pytest.raises(StoreError, match=r"there is no file .*nowhere"):
        store.read(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="cannot be read"):
        store.read(tmp_path)


def test_newer_format(path):
    forge(path, {"meta.json": META | {"format": 7, "lodim": "9.1"}, "state.json": {}})
    words = "written by lodim 9.1 with format 7; this version of lodim reads formats up to 1"
    with pytest.raises(StoreError, match=words):
        store.read(path)


@pytest.mark.parametrize("gone", ["meta.json", "state.json", "arrays/0.npy"])
def test_missing_member(saved, gone):
    forge(saved, {k: v for k, v in parts(saved).items() if k != gone})
    with pytest.raises(StoreError, match=f"no part {gone}"):
        store.read(saved)


def test_edits_are_refused(saved):
    """Each member changed, added, left out, or given twice, in a zip that is whole."""
    members = parts(saved)
    edited = [members | {name: members[name] + b" "} for name in members]
    edited += [{k: v for k, v in members.items() if k != name} for name in members]
    edited += [members | {"arrays/1.npy": members["arrays/0.npy"]}, members | {"arrays/": b""}]
    for those in edited:
        pack(saved, those)
        with pytest.raises(StoreError, match=r"checksums do not match|incomplete|damaged"):
            store.read(saved)
    with zipfile.ZipFile(saved, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        for name in (*members, "meta.json"):
            archive.writestr(name, members[name])
    with pytest.raises(StoreError, match="two parts of the same name"):
        store.read(saved)


def test_checksums_are_those_of_sha256sum(saved):
    members = parts(saved)
    for line in members["SHA256SUMS"].decode().splitlines():
        digest, name = line.split("  ")
        assert digest == hashlib.sha256(members.pop(name)).hexdigest()
    assert list(members) == ["SHA256SUMS"]


@pytest.mark.parametrize(
    "meta", [[], {}, {"format": True}, {"format": "1"}, {"format": 0}, {"format": 1, "kind": 3}]
)
def test_bad_meta(path, meta):
    forge(path, {"meta.json": meta, "state.json": {}})
    with pytest.raises(StoreError, match=r"meta\.json states no"):
        store.read(path)


@pytest.mark.parametrize(
    "state",
    [
        b"{",
        b"[]",
        b"\xff",
        b"[" * 200_000,
        {"a": {"$array": "x"}},
        {"a": {"$array": -1}},
        {"a": {"$float": 3}},
        {"a": {"$float": "00"}},
        {"$float": "7ff8000000000000"},
    ],
)
def test_bad_state(path, state):
    forge(path, {"meta.json": META, "state.json": state})
    with pytest.raises(StoreError):
        store.read(path)


def npy(descr, shape, content=b""):
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}"
    header = (header + " " * (-(len(header) + 11) % 64) + "\n").encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


@pytest.mark.parametrize(
    "content",
    [
        npy("<f8", "(10**12,)"),
        npy("<f8", "(1000000000000,)", b"\0" * 8),
        npy("<f8", "(-1,)", b""),
        npy("<f8", "(3,)", b"\0" * 16),
        npy("<f8", "(1,)", b"\0" * 16),
        npy("|O", "(1,)", b"\x80\x04N."),
        npy("<U4", "(1,)", b"\0" * 16),
        npy("<f8", "__import__('os')"),
        b"\x93NUMPY\x03\x00" + b"\0" * 60,
        b"",
    ],
)
def test_bad_array_is_refused_before_memory_is_taken(path, content):
    forge(path, {"meta.json": META, "state.json": {"a": {"$array": 0}}, "arrays/0.npy": content})
    with pytest.raises(StoreError, match="damaged"):
        store.read(path)


def test_bombs_are_refused_before_they_are_unpacked(saved, monkeypatch):
    monkeypatch.setattr(store, "MAX_BYTES", 100)
    with pytest.raises(StoreError, match="more than 100 bytes"):
        store.read(saved)
    with pytest.raises(StoreError, match="the state has more than 100 bytes"):
        store.write(saved, "k", {"a": np.zeros(100)})
    monkeypatch.undo()
    monkeypatch.setattr(store, "MAX_JSON_BYTES", 10)
    with pytest.raises(StoreError, match="more than 10 bytes in addition to its arrays"):
        store.read(saved)


def test_other_compression_is_refused(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("meta.json", json.dumps(META))
    with pytest.raises(StoreError, match="does not use"):
        store.read(path)


@pytest.mark.long
def test_every_cut_is_refused(saved):
    whole = saved.read_bytes()
    for length in range(len(whole)):
        saved.write_bytes(whole[:length])
        with pytest.raises(StoreError):
            store.read(saved)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_changed_bytes_raise_nothing_but_store_errors(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "fuzz.lodim"
    state = {"a": np.arange(9.0), "b": [1, "two", np.nan], "c": np.ones(3, bool)}
    store.write(path, "k", state)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        found = store.read(path)
    except StoreError as error:
        assert str(error)
    else:  # a byte that says nothing, such as one of a time stamp
        assert bits(found[1]) == bits(state)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=200), cut=st.integers(0, 200))
def test_changed_members_raise_nothing_but_store_errors(tmp_path_factory, content, cut):
    path = tmp_path_factory.getbasetemp() / "members.lodim"
    store.write(path, "k", {"a": np.arange(9.0)})
    members = parts(path)
    for name in members:
        forge(path, members | {name: members[name][:cut] + content})
        try:
            store.read(path)
        except StoreError as error:
            assert str(error)


def test_a_member_that_is_shorter_than_it_declares_is_refused(path):
    text = json.dumps(META).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("meta.json", text)
    whole, size = path.read_bytes(), len(text).to_bytes(4, "little")
    assert whole.count(size) == 2  # in the header of the member and in the directory
    path.write_bytes(whole.replace(size, (len(text) + 9).to_bytes(4, "little")))
    with pytest.raises(StoreError, match="cut short"):
        store.read(path)
