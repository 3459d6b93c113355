"""Findings from the checks of a fit, and the lists of checks that were made or skipped."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pandas as pd

from lodim.design.frame import PANDAS, as_given
from lodim.report.tables import Report, Summarized, paragraphs
from lodim.text import counted, join_words

MAX_NAMES = 5  # largest number of names in a sentence


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes
    ----------
    code : str
        Code of the check, from the list in help(GlmFit.check).
    severity : {"problem", "note"}
        "problem" if predictions may be wrong or their quality is unknown, else "note".
    sentence, hint : str
        Description of the finding, and advice.
    terms : tuple of str
        Features, levels or settings concerned.
    rows : tuple
        Labels of the rows concerned.

    See Also
    --------
    Checks, GlmFit.check

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> checks = ld.glm("mpg ~ weight + model_year", cars).check(cars[cars["model_year"] > 78])
    >>> [finding.code for finding in checks]
    ['drift']
    """

    code: str
    severity: str
    sentence: str
    hint: str
    terms: tuple[str, ...] = ()
    rows: tuple = ()


@dataclass(frozen=True, repr=False)
class Checks(Summarized):
    """Findings of the checks of a fit; iteration yields the findings, problems first.

    Attributes
    ----------
    call : str
        Call of the fit.
    findings : tuple of Finding
    looked_at : tuple of str
        Codes of the checks that were made.
    not_looked_at : dict of str to str
        Reason for each check that was not made, by code.
    ignored : tuple of str
        Codes of the checks that the user skipped.

    See Also
    --------
    GlmFit.check, Finding

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> checks = ld.glm("mpg ~ weight + model_year", cars).check(cars[cars["model_year"] > 78])
    >>> len(checks)
    1
    """

    call: str
    findings: tuple[Finding, ...]
    looked_at: tuple[str, ...]
    not_looked_at: dict[str, str]
    ignored: tuple[str, ...] = ()
    _frame_kind: str = field(default=PANDAS)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the findings, each once."""
        return tuple(dict.fromkeys(finding.code for finding in self.findings))

    @as_given
    def tidy(self) -> pd.DataFrame:
        """Return the findings as a data frame, one row per finding.

        Returns
        -------
        DataFrame
            code, severity, sentence, hint, terms (joined by commas), n_rows.

        See Also
        --------
        summary

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> checks = ld.glm("mpg ~ weight + model_year", cars).check(cars)
        >>> checks.tidy().columns.tolist()[:2]
        ['code', 'severity']
        """
        names = ["code", "severity", "sentence", "hint", "terms", "n_rows"]
        rows = [(*list(vars(f).values())[:4], ", ".join(f.terms), len(f.rows)) for f in self]
        return pd.DataFrame(rows, columns=names)

    def summary(self) -> Report:
        """Return the findings as a report: text, HTML in notebooks, LaTeX.

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> checks = ld.glm("mpg ~ weight + model_year", cars).check(cars)
        >>> print(checks.summary().as_text().splitlines()[0].strip())
        Checks of a Fit
        """
        header = (("Call", self.call), ("Findings", str(len(self))))
        notes = [f"{f.code}: {f.sentence} {f.hint}" for f in self]
        return Report("Checks of a Fit", header, (), [*notes, *self._looked()])

    def __repr__(self):
        found = [f"{f.code} ({f.severity}): {f.sentence} {f.hint}" for f in self]
        parts = [[line] for line in found or ["No findings."]]
        return paragraphs(f"checks of {self.call}", [*parts, self._looked()])

    def _looked(self):
        lines = [f"Checked: {', '.join(self.looked_at) or 'nothing'}."]
        why = {}
        for code, reason in self.not_looked_at.items():
            why.setdefault(reason, []).append(code)
        lines += [f"Not checked: {', '.join(codes)} ({reason})." for reason, codes in why.items()]
        lines += [f"Ignored: {', '.join(self.ignored)}."] if self.ignored else []
        return lines


def some_names(names):
    """Return a phrase that lists the first few names and the number of others."""
    names = [str(name) for name in names]
    if len(names) <= MAX_NAMES:
        return join_words(names)
    return f"{', '.join(names[:MAX_NAMES])} and {len(names) - MAX_NAMES} more"


def rows_in_words(labels):
    return f"{counted(len(labels), 'row')} ({some_names(labels)})"
