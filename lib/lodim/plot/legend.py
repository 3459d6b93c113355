"""Legend of a plot of rows: entries for classes and for other marks, in the available space."""

from dataclasses import dataclass

from lodim.plot import lettering
from lodim.plot.axes import GREY, class_labels
from lodim.plot.points import class_marks, legend_mark
from lodim.text import shorten

INK = "#202020"
MAX_CONTOURS = 5  # largest number of classes with two contours
HELD = (0.9, 0.5)  # shares of a class's rows within the outer and the inner contour
NAME_LENGTH, NARROW = 24, 16  # characters of a name in a plot, and in a legend with two columns
ARROW = ((-1, -0.1), (0.4, -0.1), (0.4, -0.4), (1, 0), (0.4, 0.4), (0.4, 0.1), (-1, 0.1))
LINES, TIGHT = 22.0, 11.5  # height of a line of the legend in points, normal and with many classes


@dataclass(frozen=True)
class Legend:
    """Names of the response and of its classes; labels is None without classes."""

    name: str
    labels: tuple | None

    @property
    def entries(self):
        """Texts of the legend, such as "species = setosa"; one text "rows" without classes."""
        named = self.labels is not None
        return class_labels(self.name, self.labels, NAME_LENGTH) if named else ["rows"]


def key(ax, legend, boundary, densities, arrows, inside=False):
    """Draw the legend of a plot of rows, right of the Axes or, if `inside`, in a corner.

    legend : Legend; boundary, densities : whether the plot has them; arrows : loadings, or None"""
    entries = class_marks(ax, legend, s=28)
    if densities:
        whose = "its" if legend.labels is not None else "the"
        outer = f"\nand {100 * HELD[0]:.0f}%" if len(legend.entries) <= MAX_CONTOURS else "\n"
        text = f"densest part with {100 * HELD[1]:.0f}%{outer} of {whose} rows"
        entries += ax.plot([], [], color=GREY, lw=1.2, label=text)
    if boundary:
        entries += ax.plot([], [], color=INK, lw=1.1, label="decision boundary")
    if arrows is not None and len(arrows.names):
        entries.append(legend_mark(ax, arrows.what, marker=ARROW, s=90, color=INK))
    write(ax, entries, legend, inside)


def write(ax, entries, legend, inside=False):
    """Draw a legend beside the Axes, or in its corner if `inside`.

    entries : artists with labels, those of the classes first
    legend : Legend, names of the response and its classes"""
    height = ax.get_window_extent().height * 72.0 / ax.figure.dpi
    n, C = len(entries), len(legend.entries)
    style = {"fontsize": 8, "labelspacing": 0.9}
    if n * LINES > height:
        style = {"fontsize": 7, "labelspacing": 0.3, "handletextpad": 0.3, "columnspacing": 0.8}
        lines = max(3, int(height / TIGHT) - 4)  # the last entries take several lines
        if n > lines:
            style["ncols"] = 2
            named = shorten(legend.labels, NARROW)
            for entry, text in zip(entries, named, strict=False):
                entry.set_label(text)
            left = min(max(0, n - 2 * lines), C - 1)  # classes without an entry
            entries = entries[: C - left] + entries[C:]
            more = f"\n(the first {C - left} of {C})" if left else ""
            style |= {"title": shorten([legend.name], NAME_LENGTH)[0] + more, "title_fontsize": 7}
    place = {"loc": "upper left", "bbox_to_anchor": (0.0, 1.0) if inside else (1.01, 1.0)}
    lettering.legend(ax, entries, frameon=False, **style, **place)
