"""Words for messages and reports: lists of names, similar names, numbers with units."""

import difflib
import re
from collections import Counter
from itertools import zip_longest

COMPARED = 10_000  # largest number of names that are compared with a misspelt name
UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def shown(value):
    """Return a value as text for an error: repr of a text or number, else a name or the type."""
    if value is None or isinstance(value, str | float | int):
        return f"{value!r:.80}"
    return getattr(value, "__name__", type(value).__name__)


def near_matches(name, names):
    """Return at most three of the names that are similar to `name`, ignoring case."""
    lower = {other.lower(): other for other in names[:COMPARED] if len(other) <= 100}
    matches = difflib.get_close_matches(name.lower()[:100], lower, n=3, cutoff=0.7)
    return [lower[key] for key in matches]


def suggestion(name, names):
    """Return a hint for an unknown name: the similar names, or the first ones."""
    near = " or ".join(map(repr, near_matches(name, names)))
    return f"did you mean {near}?" if near else f"the names are {first_few(names)}"


def first_few(names, most=8):
    """Return the first `most` names, quoted, as text such as "'a', 'b' and 3 more"."""
    return first_names([f"{name!r:.100}" for name in names], most) or "no columns"


def first_names(names, most):
    """Return the first `most` of the names as text, such as "a, b and 3 more"."""
    n = len(names)
    return ", ".join(names[:most]) + (f" and {n - most} more" if n > most else "")


def join_words(names):
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def ranges(numbers):
    """Return increasing numbers as text, with runs of three or more as ranges: "1, 3 to 7"."""
    runs = []
    for k in numbers:
        if runs and k == runs[-1][-1] + 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    texts = (f"{r[0]} to {r[-1]}" if len(r) > 2 else ", ".join(map(str, r)) for r in runs)
    return ", ".join(texts)


SETTING = re.compile(r",\s*\w+=(\[[^][]*\]|\([^()]*\)|'[^']*'|[^][(),']+)")
SPLINE_IN_TE = re.compile(r"(?<=[( ])(?:bs|cr|cc)\(([^()]*)\)(?=[,)])")


def shorten(names, room):
    """Return names shortened to `room` characters each; different names stay different."""
    names = list(map(str, names))
    for pattern, rest in ((SETTING, ""), (SPLINE_IN_TE, r"\1")):  # bs(x)[0], not bs(x, df=4)[0]
        if max(map(len, names), default=0) > room:
            short = [pattern.sub(rest, name) for name in names]
            names = short if len(set(short)) == len(set(names)) else names
    dots, mark = ("...", " ({})") if room > 4 else ("…", "{}")
    out = [name if len(name) <= room else name[: room - len(dots)] + dots for name in names]
    for text in [t for t, n in Counter(out).items() if n > 1]:
        alike = [k for k, t in enumerate(out) if t == text]
        # Keep the part that starts at the first difference, or the ends if it is too long.
        columns = enumerate(zip_longest(*(names[k] for k in alike)))
        apart = next((i for i, letters in columns if len(set(letters)) > 1), room)
        longest = max(len(names[k]) - apart for k in alike)
        rest = min(room // 2, longest)
        at_end = 0 < rest < longest and len({names[k][-rest:] for k in alike}) == len(alike)
        for k in alike:
            end = names[k][-rest:] if at_end else names[k][apart : apart + rest]
            out[k] = f"{names[k][: room - len(dots) - rest]}{dots}{end}"
    for text in [t for t, n in Counter(out).items() if n > 1]:
        for j, k in enumerate([k for k, t in enumerate(out) if t == text][1:], start=2):
            number = mark.format(j)
            out[k] = text[: max(0, room - len(number))] + number
    return out


def as_literal(text):
    """Return a text as a Python literal, in double quotes if possible."""
    return f'"{text}"' if '"' not in text and "\\" not in text else repr(text)


def counted(n, noun):
    """Return a number and its noun as text; the noun is plural unless the number is 1."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def size_in_bytes(n):
    """Return a number of bytes as text, with three digits and a unit."""
    for unit, name in UNITS:
        if n >= unit:
            return f"{n / unit:.3g} {name}"
    return f"{n:.0f} bytes"


def unused_name(name, names):
    """Return the name, with underscores appended until it is not among the names."""
    while name in names:
        name += "_"
    return name


def feature_columns(features, taken):
    """Return column names of features in a table; " (feature)" marks those that `taken` has."""
    used = {*features, *taken}
    return [unused_name(f"{name} (feature)", used) if name in taken else name for name in features]
