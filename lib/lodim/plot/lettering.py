"""Draw names in plots literally: $ starts no formula, and a box replaces what the font lacks."""

import warnings
from functools import lru_cache, wraps

import numpy as np

from lodim.errors import ArgumentError, MissingExtraError
from lodim.text import shorten

LINE, LINES = 80, 6  # largest numbers of characters per line, and of lines, of a text
TICK = 40  # largest number of characters of a name on an axis
BOX = "\u25a1"  # replaces letters that the font lacks
NAMING = ("FuncFormatter", "FixedFormatter", "StrCategoryFormatter")  # formatters of names
AXES = "ax must be matplotlib Axes, one per panel"


def literal(function):
    """Decorate a function (object, ax=None, ...) -> Axes: its texts become literal, not TeX."""

    @wraps(function)
    def drawn(thing, ax=None, *args, **kwargs):
        try:
            from matplotlib import rcParams
        except ImportError as error:
            raise MissingExtraError("plots need matplotlib: pip install 'lodim[plot]'") from error
        before = {text: text.get_text() for text in _texts(_figure(ax))}
        # Only this setting is restored: the first figure makes Jupyter's backend change others,
        # which it needs to show later figures.
        maths, rcParams["text.parse_math"] = rcParams["text.parse_math"], False
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Glyph")  # about layouts before texts are final
                out = function(thing, ax, *args, **kwargs)
        finally:
            rcParams["text.parse_math"] = maths
        figure = _figure(out)
        for text in _texts(figure):
            if before.get(text) != text.get_text():
                _settle(text)
        for axis in figure.findobj(lambda part: hasattr(part, "get_major_formatter")):
            _settle_ticks(axis)
        return out

    return drawn


def legend(place, entries, **style):
    """Add a legend of artists (`entries`) to Axes or a Figure; labels may start with "_"."""
    labels = _cut([entry.get_label() for entry in entries], LINE)
    out = place.legend(entries, [f"entry {k}" for k in range(len(entries))], **style)
    for text, label in zip(out.get_texts(), labels, strict=True):
        text.set_text(label)
    return out


def _figure(axes):
    if axes is None:
        return None
    every = list(np.ravel(np.asarray(axes, dtype=object)))
    if not every or not all(hasattr(ax, "figure") and hasattr(ax, "plot") for ax in every):
        raise ArgumentError(f"{AXES}, not {axes!r:.80}")
    return every[0].figure


def _texts(figure):
    return [] if figure is None else figure.findobj(lambda part: hasattr(part, "set_parse_math"))


def _cut(texts, room):
    return shorten(texts, room) if max(map(len, texts), default=0) > room else texts


def _settle(text):
    text.set_parse_math(False)
    lines = _legible(text.get_text(), text.get_fontproperties()).split("\n")
    lines = [_cut([line], LINE)[0] for line in lines]
    text.set_text("\n".join(lines if len(lines) <= LINES else [*lines[: LINES - 1], "..."]))


def _settle_ticks(axis):
    """Show text ticks of an axis literally ($ is no mathematics); leave numbers to matplotlib."""
    if type(axis.get_major_formatter()).__name__ not in NAMING:
        for label in axis.get_ticklabels(which="both"):
            label.set_parse_math(True)
        axis.get_offset_text().set_parse_math(True)
        return
    ends = axis.get_view_interval()
    labels = axis.get_ticklabels()
    font = labels[0].get_fontproperties() if labels else None
    names = [_legible(label.get_text(), font) for label in labels]
    axis.set_ticks(axis.get_majorticklocs(), labels=_cut(names, TICK), parse_math=False)
    axis.set_view_interval(*ends, ignore=True)


def _legible(text, font):
    """Return a text without control characters, with boxes instead of letters the font lacks."""
    known = _letters(_files(font))
    text = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return "".join(c if c in "\n " or ord(c) in known else BOX for c in text)


def _files(font):
    """Return the files of a font and of the fonts that matplotlib uses as fallback."""
    from matplotlib.font_manager import findfont

    files = []
    for family in font.get_family():
        one = font.copy()
        one.set_family(family)
        files.append(findfont(one))
    return tuple(files)


@lru_cache(maxsize=32)
def _letters(files):
    from matplotlib.font_manager import get_font

    return frozenset().union(*(get_font(file).get_charmap() for file in files))
