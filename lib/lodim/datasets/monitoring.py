"""Alerts of a simulated bedside monitor: signals with prices, and features made from them."""

from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from lodim.checks import MOST_ROWS, flag, number, one_of, whole
from lodim.datasets.synthetic import _generator
from lodim.errors import ArgumentError

# Name, typical value and spread of a reading, in clinical units.
READINGS = """
hr 90 15, rr 20 3.5, bp 120 17, spo2 88 2.5, temp 37.5 0.7, etco2 38 5, cvp 10 1.8, pi 4 0.7,
icp 12 2, co 5 0.8, svr 1100 180, pap 25 4, st 2 0.35, qt 400 30, tv 480 70, peep 7 1.2,
ppeak 24 4, fio2 45 8, bis 55 9, svo2 68 6, nirs 65 7, skin 33 1.3, urine 60 10, lactate 3 0.5,
hb 11 1.5, glucose 140 24, ph 7.3 0.08, po2 85 12, pco2 42 6, k 4.2 0.5
"""
SIGNALS = [
    (name, float(typical), float(spread))
    for name, typical, spread in map(str.split, READINGS.split(","))
]
MINUTES, SAMPLES = 4, 48  # window of the thesis: one sample every five seconds
BLOCKS = 8  # one mean per half minute
# Features derived from a signal, in the order in which they are added until there are p.
GRAPHS = {
    "mixed": ("mean", "sd", "mean_slope", "density", "ratio", "mean_slope_sign", "range", "slope"),
    "stars": ("mean", "sd", "slope", "density", "range"),
    "chains": ("mean", "mean_slope", "mean_slope_abs", "mean_slope_abs_high"),
    "pairs": ("ratio", "ratio", "ratio", "ratio"),
}
RESPONSES = ("numeric", "alert")
# Number of informative features of the first, second and third signal of the truth.
CARRIED = (4, 3, 2)
DECAY = 0.85
INVASIVE, CUFF, CUFF_ERROR = 3.0, 1.0, 4.0


class _Node(NamedTuple):
    """A simulated feature: its name; the features and signals (by number) that it is made of."""

    name: str
    parents: tuple[str, ...]
    signals: tuple[int, ...]


def monitoring(
    n: int = 812,
    p: int = 150,
    seed: int = 0,
    *,
    signals: int = 25,
    graph: Literal["mixed", "stars", "chains", "pairs"] = "mixed",
    response: Literal["numeric", "alert"] = "numeric",
    noise: float = 0.5,
    coupling: float = 0.5,
    alternatives: bool = False,
) -> pd.DataFrame:
    """Simulate alerts of a bedside monitor: base signals with prices, and derived features.

    Every signal has 48 samples over the four minutes before an alert, whose level, trend,
    volatility and missing share vary. The base feature is the last sample.

    Parameters
    ----------
    n, p : int, default=812, 150
        Number of alerts (rows), and total number of features, base and derived; an ArgumentError if
        the graph cannot have p features.
    seed : int, default=0
    signals : int, default=25
        Number of base features: hr, rr, bp, spo2 and 26 other named signals, then x31, x32, ...
    graph : {"mixed", "stars", "chains", "pairs"}, default="mixed"
        Derived features. "stars": mean, standard deviation, slope, density (share not missing) and
        range of each signal. "chains": mean, slope of half-minute means, absolute slope, whether it
        is large, each from the previous one. "pairs": ratios of two signals. "mixed": some of each.
    response : {"numeric", "alert"}, default="numeric"
        y is a number, or "alert" or "artifact" with P(artifact) = logistic(s / noise), where s is
        the numeric y without noise.
    noise : float, default=0.5
        Standard deviation of the normal noise of y; without it y has standard deviation 1.
    coupling : float, default=0.5
        Share of the variance of level, trend, volatility and missing samples that signals of a
        group have in common. The groups are signals 1, 4, 7, ...; 2, 5, 8, ...; and 3, 6, 9, ...
    alternatives : bool, default=False
        Measure the informative signal bp in two ways, of which its derived features need one:
        `bp_invasive` at cost 3, or `bp_cuff` at cost 1 with an error of 4 mmHg (SD).

    Returns
    -------
    DataFrame
        n rows; the features, then y. The attrs `costs`, `depends_on` and `alternatives` are
        arguments for `costnet`; each base feature and each operation costs 1. Further attrs:
        `informative` (names), `coefficients` and `intercept` (of y without noise), `price` (cost of
        the informative features and all features that they need), `noise`.

    See Also
    --------
    costnet, data

    References
    ----------
    Informative projection recovery, Sect. 5.3: 812 alerts with 150 interdependent features. These
    data are not public. Signals, their dynamics and the truth are our own.

    Examples
    --------
    >>> import lodim as ld
    >>> alerts = ld.monitoring(100, p=30, signals=10)
    >>> alerts.attrs["costs"]["hr"], alerts.attrs["depends_on"]["hr_mean"]
    (1.0, ['hr'])
    """
    n, p, signals = whole("n", n, most=MOST_ROWS), whole("p", p), whole("signals", signals, 5)
    noise, coupling = number("noise", noise, least=0), number("coupling", coupling, 0, 1)
    flag("alternatives", alternatives)
    one_of("graph", graph, GRAPHS)
    one_of("response", response, RESPONSES)
    if noise == 0 and response == "alert":
        raise ArgumentError("noise must be positive (0 is allowed for a numeric y)")
    room = signals * (1 + len(GRAPHS[graph]))
    if not signals <= p <= room:
        what = f"p must be from {signals} to {room} for {signals} signals and graph={graph!r}"
        raise ArgumentError(f"{what}, not {p}")
    rng = _generator(seed)
    plan = _plan(p, signals, graph)
    columns = _measure(rng, n, signals, coupling, plan)
    start = int(rng.integers(3 if alternatives else signals))  # bp is the third signal
    truth, score = _truth(rng, plan, columns, [(start + k) % signals for k in range(3)])
    if response == "numeric":
        y = score + noise * rng.standard_normal(n)
    else:
        artifact = rng.random(n) < 1 / (1 + np.exp(-score / noise))
        y = np.where(artifact, "artifact", "alert")
    df = pd.DataFrame(columns).assign(y=y)
    depends_on = {node.name: list(node.parents) for node in plan if node.parents}
    costs = {node.name: 1.0 for node in plan}
    # Plain dictionaries, never arrays: pandas compares and copies attrs.
    df.attrs.update(costs=costs, depends_on=depends_on, alternatives={}, **truth, noise=noise)
    if alternatives:
        df = _two_ways(rng, df)
    df.attrs["price"] = _price(df.attrs)
    return df


def _plan(p, signals, graph):
    """Return the p features to simulate, a list of _Node: base signals, then features made of them.

    signals : number of base signals (heart rate etc.)
    graph : "mixed", "stars", "chains" or "pairs": kinds of features to make of signals"""
    names = [_signal(b)[0] for b in range(signals)]
    plan = [_Node(name, (), (b,)) for b, name in enumerate(names)]
    step = 0
    for operation in GRAPHS[graph]:
        step += operation == "ratio"
        for b, name in enumerate(names):
            other = (b + step) % signals
            if operation == "ratio":
                plan.append(_Node(f"{name}_per_{names[other]}", (name, names[other]), (b, other)))
            else:
                # hr_mean_slope is computed from hr_mean, and hr_mean from hr.
                parent = f"{name}_{operation}".rpartition("_")[0]
                plan.append(_Node(f"{name}_{operation}", (parent,), (b,)))
    return plan[:p]


def _signal(b):
    return SIGNALS[b] if b < len(SIGNALS) else (f"x{b + 1}", 100.0, 15.0)


def _measure(rng, n, signals, coupling, plan):
    """Simulate n rows of planned features; return a dict name -> column.

    signals : number of base signals; plan : list of _Node, the features
    coupling : share of variance that the signals of a group have in common"""
    # Every third signal is in the same group.
    common = rng.standard_normal((3, 4, n))
    columns = {}
    for b in range(signals):
        single = rng.standard_normal((4, n))
        state = np.sqrt(coupling) * common[b % 3] + np.sqrt(1 - coupling) * single
        name, centre, spread = _signal(b)
        samples, present = _sample(rng, state)
        columns |= _derive(name, centre + spread * samples, present, spread)
    for node in plan:
        if len(node.parents) == 2:
            columns[node.name] = columns[node.parents[0]] / columns[node.parents[1]]
    return {node.name: columns[node.name] for node in plan}


def _sample(rng, state):
    """Simulate a standardized time series per row; return it, and whether values are observed.

    state : (4, n) level, trend, log volatility and tendency to miss samples of each row
    Both results are (n, 48)."""
    level, trend, volatility, loss = state
    shock = rng.standard_normal((SAMPLES, len(level)))
    for t in range(1, SAMPLES):
        shock[t] = 0.6 * shock[t - 1] + 0.8 * shock[t]
    time = np.linspace(-1, 0, SAMPLES)
    samples = level + np.outer(time, trend) + 0.5 * np.exp(0.5 * volatility) * shock
    present = rng.random(samples.shape) < 1 / (1 + np.exp(loss - 2))
    present[[0, -1]] = True  # the ends are present, so that all features are defined
    return np.clip(samples, -4, 4).T, present.T


def _derive(name, x, present, spread):
    """Return a dict of features of a signal, such as <name>_mean and <name>_slope.

    x : (n, 48) samples of the signal
    present : (n, 48) bool, whether each sample is observed
    spread : standard deviation of the signal"""
    minutes = np.linspace(-MINUTES, 0, SAMPLES)
    mean = _mean(x, present)
    halves = present.reshape(len(x), BLOCKS, -1)
    arrived = halves.sum(axis=2)
    means = np.where(halves, x.reshape(halves.shape), 0).sum(axis=2) / np.maximum(arrived, 1)
    slope = _slope(minutes.reshape(BLOCKS, -1).mean(axis=1), means, arrived > 0)
    low = np.where(present, x, np.inf).min(axis=1)
    high = np.where(present, x, -np.inf).max(axis=1)
    return {
        name: x[:, -1],
        f"{name}_mean": mean,
        f"{name}_sd": np.sqrt(_mean((x - mean[:, None]) ** 2, present)),
        f"{name}_slope": _slope(minutes, x, present),
        f"{name}_density": present.mean(axis=1),
        f"{name}_range": high - low,
        f"{name}_mean_slope": slope,
        f"{name}_mean_slope_sign": np.sign(slope),
        f"{name}_mean_slope_abs": np.abs(slope),
        f"{name}_mean_slope_abs_high": (np.abs(slope) > spread / MINUTES).astype(float),
    }


def _mean(x, weight):
    return (x * weight).sum(axis=1) / weight.sum(axis=1)


def _slope(time, x, weight):
    lag = time - _mean(np.broadcast_to(time, x.shape), weight)[:, None]
    return (lag * x * weight).sum(axis=1) / (lag**2 * weight).sum(axis=1)


def _truth(rng, plan, columns, carriers):
    """Choose features at random, and coefficients; return a dict of both, and y without noise (n,).

    plan : list of _Node, all features
    columns : dict feature -> values (n,)
    carriers : numbers of the three signals on which the response depends"""
    names = []
    for k, size in enumerate(CARRIED):
        known = set(carriers[: k + 1])
        names_k = [v.name for v in plan if carriers[k] in v.signals and known.issuperset(v.signals)]
        first = names_k[: k == 0]  # the reading of the first signal is always part of the truth
        others = rng.permutation(names_k[len(first) :]).tolist()
        names += (first + others)[:size]
    X = np.column_stack([columns[name] for name in names])
    sign = rng.choice([-1.0, 1.0], len(names))
    spread = np.maximum(X.std(axis=0), np.finfo(float).tiny)
    coefficients = sign * DECAY ** np.arange(len(names)) / spread
    score = X @ coefficients
    coefficients /= score.std()
    score /= score.std()
    weights = dict(zip(names, coefficients.tolist(), strict=True))
    truth = dict(informative=names, coefficients=weights, intercept=-float(score.mean()))
    return truth, score - score.mean()


def _two_ways(rng, df):
    """Return `df` with blood pressure measured in two ways: exact, or cheaper but with error."""
    attrs = dict(df.attrs)
    cuff = df["bp"] + CUFF_ERROR * rng.standard_normal(len(df))
    df = df.rename(columns={"bp": "bp_invasive"})
    df.insert(df.columns.get_loc("bp_invasive") + 1, "bp_cuff", cuff)
    costs = {name: 1.0 for name in df if name != "y"} | dict(bp_invasive=INVASIVE, bp_cuff=CUFF)
    exact = {"bp": "bp_invasive"}
    coefficients = {exact.get(name, name): c for name, c in attrs["coefficients"].items()}
    df.attrs = attrs | dict(informative=list(coefficients), coefficients=coefficients)
    df.attrs |= dict(costs=costs, alternatives={"bp": ["bp_invasive", "bp_cuff"]})
    return df


def _price(attrs):
    """Return the total cost of the informative features and of all that they are computed from.

    attrs : dict of the data, with "informative", "depends_on", "alternatives" and "costs" """
    needed, waiting = set(), list(attrs["informative"])
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += attrs["depends_on"].get(name, [])
    for series, sources in attrs["alternatives"].items():
        if series in needed and not needed & set(sources):
            needed.add(min(sources, key=attrs["costs"].get))
    return float(sum(attrs["costs"].get(name, 0.0) for name in needed))
