"""The legend of a view: classes, what is drawn of them, and how much of it there is room for."""

from dataclasses import dataclass

from lodim.plot import lettering
from lodim.plot.axes import GREY, class_labels, colour, mark
from lodim.plot.points import legend_mark
from lodim.text import shorten

INK = "#202020"
FEW = 5  # most classes with distinct contours
HELD = (0.9, 0.5)  # shares of a class's rows within its contours, the outer one first
ROOM, NARROW = 24, 16  # characters of a name in a plot, and in a legend of two columns
ARROW = ((-1, -0.1), (0.4, -0.1), (0.4, -0.4), (1, 0), (0.4, 0.4), (0.4, 0.1), (-1, 0.1))
LINES, TIGHT = 22.0, 11.5  # points of a line of the legend, and of one of many classes


@dataclass(frozen=True)
class Legend:
    """Names of the classes; labels is None without classes."""

    name: str
    labels: tuple | None

    @property
    def entries(self):
        """Text of each class; one for all rows without classes."""
        return ["rows"] if self.labels is None else class_labels(self.name, self.labels, ROOM)


def key(ax, legend, boundary, densities, arrows, inside=False):
    """The legend: outside on the right, where it hides nothing, or in a corner of a cube."""
    entries = []
    for k, label in enumerate(legend.entries):
        entries.append(legend_mark(ax, label, s=28, color=colour(k), marker=mark(k)))
    if densities:
        whose = "its" if legend.labels is not None else "the"
        outer = f"\nand {100 * HELD[0]:.0f} %" if len(legend.entries) <= FEW else "\n"
        text = f"densest part with {100 * HELD[1]:.0f} %{outer} of {whose} rows"
        entries += ax.plot([], [], color=GREY, lw=1.2, label=text)
    if boundary:
        entries += ax.plot([], [], color=INK, lw=1.1, label="decision boundary")
    if arrows is not None and len(arrows.names):
        entries.append(legend_mark(ax, arrows.what, marker=ARROW, s=90, color=INK))
    write(ax, entries, legend, inside)


def write(ax, entries, legend, inside=False):
    """Entries, those of the classes first, in as many lines as the Axes have room for.

    Many classes stand closer together, then in two columns, and of still more the first alone.
    """
    height = ax.get_window_extent().height * 72.0 / ax.figure.dpi
    n, C = len(entries), len(legend.entries)
    style = {"fontsize": 8, "labelspacing": 0.9}
    if n * LINES > height:
        style = {"fontsize": 7, "labelspacing": 0.3, "handletextpad": 0.3, "columnspacing": 0.8}
        lines = max(3, int(height / TIGHT) - 4)  # the last entries have several lines
        if n > lines:
            style["ncols"] = 2
            named = shorten(legend.labels, NARROW)
            for entry, text in zip(entries, named, strict=False):
                entry.set_label(text)
            entries, left = _those_with_room(entries, C, 2 * lines)
            more = f"\n(the first {C - left} of {C})" if left else ""
            style |= {"title": shorten([legend.name], ROOM)[0] + more, "title_fontsize": 7}
    place = {"loc": "upper left", "bbox_to_anchor": (0.0, 1.0) if inside else (1.01, 1.0)}
    lettering.legend(ax, entries, frameon=False, **style, **place)


def _those_with_room(entries, n_classes, room):
    """Return the entries without those of the last classes, and how many were left out."""
    left = min(max(0, len(entries) - room), n_classes - 1)
    return entries[: n_classes - left] + entries[n_classes:], left
