"""Saving and loading without pickle: a zip file of JSON and plain arrays, which runs no code."""

import functools
import hashlib
import json
import math
import os
import re
import stat
import struct
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

import lodim
from lodim.atomic_write import replacing
from lodim.errors import StoreError

FORMAT = 1
SUMS = "SHA256SUMS"
MAX_BYTES = 2**30  # limit for all unpacked members: far above any fit, far below a zip bomb
MAX_MEMBERS = 100_000
MAX_JSON_BYTES = 2**26

_NUMERIC = "biufc"
_WIDEST = {"f": 8, "c": 16}  # wider floats differ between machines
_EPOCH = (1980, 1, 1, 0, 0, 0)  # fixed time stamp, so that equal states give equal files
_TAG = "$"
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufc]\d{1,2})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d+,(?: \d+,)* ?|\d+(?:, \d+)+)?)\), \} *\n"
)


def write(path: str | os.PathLike, kind: str, state: dict[str, Any]) -> None:
    """Save values and arrays to a file; after an error, an existing file is unchanged.

    kind : what the file holds, such as "gbmap"; state : nested dicts of values and arrays"""
    # Floats keep every bit; tuples are read back as lists, and NumPy scalars as Python values.
    if not isinstance(kind, str) or not isinstance(state, dict):
        raise StoreError("write() takes kind as text and state as a dict")
    arrays: list[np.ndarray] = []
    meta = {"format": FORMAT, "lodim": lodim.__version__, "kind": kind}
    try:
        members = {"meta.json": _json(meta), "state.json": _json(_encode(state, "state", arrays))}
    except RecursionError:
        raise StoreError("the state is nested too deeply, or contains itself") from None
    for k, array in enumerate(arrays):
        stream = BytesIO()
        np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
        members[_member(k)] = stream.getvalue()
    members[SUMS] = _sums(members)
    _check_sizes({name: len(content) for name, content in members.items()}, "the state")
    target = _path(path)
    if not target.name:
        raise StoreError(f"{target} is not the name of a file")
    try:
        with replacing(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                info = zipfile.ZipInfo(name, _EPOCH)
                archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error


def _path(path):
    try:
        name = os.fsencode(path)
    except TypeError:
        raise StoreError(f"path must be text or a path, not {path!r}") from None
    except UnicodeEncodeError as error:
        raise StoreError(f"{path!r} is not the name of a file: {error}") from None
    if b"\0" in name:
        raise StoreError(f"{path!r} is not the name of a file: it has a null character")
    return Path(os.fsdecode(name))


def read(path: str | os.PathLike) -> tuple[str, dict[str, Any]]:
    """Return the kind and the state of a file that `write` saved; else raise StoreError."""
    path = _path(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise StoreError(f"{path} cannot be read: it is not a regular file")
        with open(path, "rb") as file:
            return _read(file, path)
    except StoreError:
        raise
    except FileNotFoundError:
        raise StoreError(f"there is no file {path}") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    except Exception as error:
        # A damaged byte can cause almost any exception in zipfile, zlib, json and numpy.
        raise StoreError(f"{str(path)!r} is damaged: {type(error).__name__}: {error}") from error


def _read(file, path):
    if not zipfile.is_zipfile(file):
        raise StoreError(f"{path} is not a file that lodim saved, or it is incomplete")
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        if any(m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for m in infos):
            raise StoreError(f"{path} is damaged: it uses a compression that lodim does not use")
        sizes = {info.filename: info.file_size for info in infos}
        if len(sizes) < len(infos):
            raise StoreError(f"{path} is damaged: it has two parts of the same name")
        _check_sizes(sizes, path)
        members = {info.filename: _content(archive, info) for info in infos}
    kind = _kind(json.loads(_member_of(members, "meta.json", path)), path)
    if _member_of(members, SUMS, path) != _sums(members):
        why = "was edited after it was saved: its checksums do not match"
        raise StoreError(f"{path} is damaged, or {why}")
    # Each array is read only once, even if a forged state names it many times.
    load = functools.cache(functools.partial(_array, members, path))
    state = _decode(json.loads(_member_of(members, "state.json", path)), load)
    if not isinstance(state, dict):
        raise StoreError(f"{path} is damaged: its state is not a dict")
    return kind, state


def _content(archive, info):
    """Return the bytes of a member of a zip file, at most as many as it declares."""
    content, at = bytearray(info.file_size), 0
    with archive.open(info) as stream:
        while step := stream.readinto(memoryview(content)[at:]):
            at += step
    if at < len(content):
        raise StoreError(f"{info.filename} is cut short")
    return content


def _sums(members):
    """Return the checksums of all members of a zip file, one per line, as sha256sum writes them."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    sums.pop(SUMS, None)
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()


def _check_sizes(sizes, what):
    if len(sizes) > MAX_MEMBERS or sum(sizes.values()) > MAX_BYTES:
        most = f"{MAX_BYTES} bytes or {MAX_MEMBERS} arrays"
        raise StoreError(f"{what} has more than {most}, the largest that lodim allows")
    if any(name.endswith(".json") and size > MAX_JSON_BYTES for name, size in sizes.items()):
        why = f"{what} has more than {MAX_JSON_BYTES} bytes in addition to its arrays"
        raise StoreError(f"{why}, the most that lodim allows")


def _kind(meta, path):
    """Return the kind of saved object stated by `meta` (meta.json); StoreError if it is invalid."""
    number = meta.get("format") if isinstance(meta, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise StoreError(f"{path} is damaged: meta.json states no format number")
    if number > FORMAT:
        raise StoreError(
            f"{path} was written by lodim {meta.get('lodim')} with format {number}; this version "
            f"of lodim reads formats up to {FORMAT}: upgrade lodim"
        )
    if not isinstance(meta.get("kind"), str):
        raise StoreError(f"{path} is damaged: meta.json states no kind")
    return meta["kind"]


def _encode(value, where, arrays):
    """Return a value as JSON data; move arrays to the list `arrays`; where : its name in errors."""
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise StoreError(f"{where} is a masked array: save its data and its mask")
        kind, size = value.dtype.kind, value.dtype.itemsize
        if kind not in _NUMERIC or size > _WIDEST.get(kind, size):
            what = f"{where} is an array of {value.dtype}"
            raise StoreError(f"{what}; only numbers and bool are saved")
        arrays.append(np.asarray(value))
        return {_TAG + "array": len(arrays) - 1}
    if isinstance(value, np.generic) and value.dtype.kind in "biuf" and value.itemsize <= 8:
        value = value.item()
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_TAG + "float": struct.pack(">d", value).hex()}
    if isinstance(value, list | tuple):
        return [_encode(v, f"{where}[{k}]", arrays) for k, v in enumerate(value)]
    if isinstance(value, dict):
        encoded = {}
        for key, entry in value.items():
            if not isinstance(key, str):
                raise StoreError(f"{where} has the key {key!r}; keys must be text")
            name = _TAG + key if key.startswith(_TAG) else key
            encoded[name] = _encode(entry, f"{where}[{key!r}]", arrays)
        return encoded
    raise StoreError(f"{where} is a {type(value).__name__}, which cannot be saved")


def _decode(value, load):
    if isinstance(value, list):
        return [_decode(v, load) for v in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, item),) = value.items()
        if key == _TAG + "float":
            return struct.unpack(">d", bytes.fromhex(item))[0]
        if key == _TAG + "array":
            return load(int(item))
    return {k.removeprefix(_TAG): _decode(v, load) for k, v in value.items()}


def _array(members, path, number):
    """Return array number `number` among the members of a file; its bytes must match its header."""
    name = _member(number)
    content = _member_of(members, name, path)
    size = struct.unpack_from("<H", content, 8)[0] if content[:8] == _MAGIC else 0
    header = _HEADER.fullmatch(content, 10, 10 + size)
    if header is None:
        raise StoreError(f"{path} is damaged: {name} is no array of numbers")
    dtype = np.dtype(header[1].decode())
    shape = tuple(map(int, re.findall(rb"\d+", header[3])))
    data = memoryview(content)[10 + size :]
    if math.prod(shape) * dtype.itemsize != len(data):
        raise StoreError(f"{path} is damaged: {name} has {len(data)} bytes for shape {shape}")
    order = "F" if header[2] == b"True" else "C"
    return np.frombuffer(data, dtype).reshape(shape, order=order).copy(order)


def _member_of(members, name, path):
    if name not in members:
        why = f"it is incomplete: it has no part {name}"
        raise StoreError(f"{path} is not a file that lodim saved, or {why}")
    return members[name]


def _json(value):
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except ValueError as error:  # the state contains itself, or an integer with thousands of digits
        raise StoreError(f"the state cannot be saved: {error}") from None


def _member(number):
    return f"arrays/{number}.npy"
