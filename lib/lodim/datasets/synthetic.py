"""Generators of synthetic data with a known truth in `df.attrs`; columns are x1, ..., xp and y."""

from itertools import combinations

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist

from lodim.checks import MOST_ROWS, as_seed, flag, number, whole
from lodim.errors import ArgumentError


def synth_cos_r(
    n: int = 2000, p: int = 20, seed: int = 0, *, scale: float = 5.0, rotate: bool = False
) -> pd.DataFrame:
    """Generate regression data: a random mixture of cosines, without noise.

    Parameters
    ----------
    n, p : int, default=2000, 20
        Number of rows and features. The paper uses 200,000 and 200.
    seed : int, default=0
    scale : float, default=5.0
        Factor on y (alpha in the paper).
    rotate : bool, default=False
        Return features X Q, with a random orthogonal Q: no cosine depends on a single feature.

    Returns
    -------
    DataFrame
        n rows; x1..xp are standard normal, y = scale cos(X) u - centre with mean zero. attrs:
        `direction` (u, a unit vector, p numbers), `scale`, `centre`, `rotate`, `seed`.

    See Also
    --------
    synth_cos_c, friedman1

    References
    ----------
    Gradient boosting mapping, Sect. 4.1, "synth-cos-r".

    Examples
    --------
    >>> import lodim as ld
    >>> ld.synth_cos_r(100, p=5).shape
    (100, 6)
    """
    rng, n, p = _generator(seed), _rows(n), whole("p", p)
    scale, rotate = number("scale", scale), flag("rotate", rotate)
    X = rng.standard_normal((n, p))
    u = _unit_vector(rng, p)
    y = scale * np.cos(X) @ u
    truth = dict(
        direction=u.tolist(), scale=scale, centre=float(y.mean()), rotate=rotate, seed=seed
    )
    return _frame(X @ random_rotation(p, seed) if rotate else X, y - y.mean(), truth)


def synth_cos_c(
    n: int = 2000, p: int = 20, seed: int = 0, *, scale: float = 5.0, rotate: bool = False
) -> pd.DataFrame:
    """Generate classification data: labels with probability logistic(y), y of `synth_cos_r`.

    Parameters
    ----------
    n, p, seed, scale, rotate
        As in `synth_cos_r`; the features are the same.

    Returns
    -------
    DataFrame
        n rows; y is 0 or 1 (the paper writes -1 and +1). attrs as in `synth_cos_r`.

    See Also
    --------
    synth_cos_r, xor

    References
    ----------
    Gradient boosting mapping, Sect. 4.1, "synth-cos-c".

    Examples
    --------
    >>> import lodim as ld
    >>> sorted(set(ld.synth_cos_c(100, p=5)["y"]))
    [0, 1]
    """
    df = synth_cos_r(n, p, seed, scale=scale, rotate=rotate)
    probability = 1 / (1 + np.exp(-df["y"].to_numpy()))
    df["y"] = (_generator(seed, stream=2).random(n) < probability).astype(np.int64)
    return df


def random_rotation(p: int, seed: int = 0) -> np.ndarray:
    """Return a random orthogonal matrix (p, p), uniformly distributed, as `rotate=True` uses it."""
    p = whole("p", p)
    Q, R = np.linalg.qr(_generator(seed, stream=1).standard_normal((p, p)))
    return Q * np.sign(np.diag(R))  # fixed signs make the distribution uniform


def three_clusters(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    """Generate regression data in three clusters, one of which differs only in irrelevant features.

    Cluster a is shifted by 4 in x1..x4, b1 by 4 in x5..x8, b2 not at all. y depends only on x1..x4,
    so a supervised embedding merges b1 and b2, whereas PCA of the features shows three clusters.

    Parameters
    ----------
    n : int, default=3000
        Number of rows, in three clusters of equal size (up to one row).
    seed : int, default=0

    Returns
    -------
    DataFrame
        n rows; x1..x8, y = cos(X) u. attrs: `direction` (u, a unit vector, zero in x5..x8) and
        `clusters`, the rows [start, stop) of each of a, b1, b2.

    See Also
    --------
    ripr, checkerboard

    References
    ----------
    Gradient boosting mapping, Appendix F, Eqs. 17 and 18.

    Examples
    --------
    >>> import lodim as ld
    >>> ld.three_clusters(90).attrs["clusters"]
    {'a': [0, 30], 'b1': [30, 60], 'b2': [60, 90]}
    """
    rng, n = _generator(seed), _rows(n, least=3)  # one row per cluster
    X = rng.standard_normal((n, 8))
    cut = [round(n * k / 3) for k in range(4)]
    X[: cut[1], :4] += 4
    X[cut[1] : cut[2], 4:] += 4
    u = np.append(_unit_vector(rng, 4), np.zeros(4))
    clusters = {name: cut[k : k + 2] for k, name in enumerate(("a", "b1", "b2"))}
    return _frame(X, np.cos(X) @ u, dict(direction=u.tolist(), clusters=clusters))


def checkerboard(
    n: int = 6400, squares: int = 8, seed: int = 0, *, noise: int = 0, angle: float = 0.0
) -> pd.DataFrame:
    """Generate two classes on a checkerboard over the unit square: no global structure.

    Parameters
    ----------
    n : int, default=6400
        Number of rows.
    squares : int, default=8
        Number of squares per side.
    seed : int, default=0
    noise : int, default=0
        Number of additional uniform features without influence on the class.
    angle : float, default=0.0
        Rotation of the board about its centre, in degrees; the report also uses 45.

    Returns
    -------
    DataFrame
        n rows; x1, x2 are the position on the board, x3.. the noise; y is 0 or 1, without label
        noise. attrs: `squares`, `angle`, `informative` (the two names).

    See Also
    --------
    xor, three_clusters

    References
    ----------
    Prototype sets, Sect. 2.3 ("Checker") and 2.4 ("Checker rot").

    Examples
    --------
    >>> import lodim as ld
    >>> list(ld.checkerboard(100, noise=1))
    ['x1', 'x2', 'x3', 'y']
    """
    n, squares, noise = _rows(n), whole("squares", squares), whole("noise", noise, least=0)
    angle = number("angle", angle, -360, 360)
    X = _generator(seed).random((n, 2 + noise))
    y = np.floor(X[:, :2] * squares).astype(np.int64).sum(axis=1) % 2
    turn = np.deg2rad(angle)
    R = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    if angle:
        X[:, :2] = (X[:, :2] - 0.5) @ R + 0.5
    return _frame(X, y, dict(squares=squares, angle=angle, informative=["x1", "x2"]))


def xor(n: int = 6400, informative: int = 6, noise: int = 0, seed: int = 0) -> pd.DataFrame:
    """Generate continuous XOR data: the class is the sign of a product of features.

    Parameters
    ----------
    n : int, default=6400
        Number of rows; the report uses 100 per orthant of the informative features.
    informative, noise : int, default=6, 0
        Number of features in the product, and of additional features without influence.
    seed : int, default=0

    Returns
    -------
    DataFrame
        n rows; features uniform on [-1, 1], the informative ones first; y = 1 if their product is
        not negative, else 0; no proper subset of them predicts y. attrs: `informative` (names).

    See Also
    --------
    checkerboard, proset

    References
    ----------
    Prototype sets, Sect. 2.3 ("XOR 6f") and 2.4 ("XOR 6+6f").

    Examples
    --------
    >>> import lodim as ld
    >>> ld.xor(100, informative=2, noise=3).attrs["informative"]
    ['x1', 'x2']
    """
    n, informative = _rows(n), whole("informative", informative)
    X = _generator(seed).uniform(-1, 1, (n, informative + whole("noise", noise, least=0)))
    y = (X[:, :informative].prod(axis=1) >= 0).astype(np.int64)
    return _frame(X, y, dict(informative=[f"x{j + 1}" for j in range(informative)]))


def friedman1(n: int = 1000, p: int = 10, seed: int = 0, *, noise: float = 1.0) -> pd.DataFrame:
    """Generate Friedman's first regression problem: five informative features, two interacting.

    Parameters
    ----------
    n, p : int, default=1000, 10
        Number of rows and features, p >= 5.
    seed : int, default=0
    noise : float, default=1.0
        Standard deviation of the normal noise.

    Returns
    -------
    DataFrame
        n rows; features uniform on [0, 1];
        y = 10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 + noise.
        attrs: `informative` (names), `noise`.

    See Also
    --------
    synth_cos_r

    References
    ----------
    Friedman (1991), Multivariate adaptive regression splines, Annals of Statistics 19.

    Examples
    --------
    >>> import lodim as ld
    >>> ld.friedman1(100, noise=0.5).attrs["noise"]
    0.5
    """
    rng, n, p = _generator(seed), _rows(n), whole("p", p, least=5)  # five are informative
    noise = number("noise", noise, least=0)
    X = rng.random((n, p))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y += 10 * X[:, 3] + 5 * X[:, 4] + noise * rng.standard_normal(n)
    return _frame(X, y, dict(informative=[f"x{j + 1}" for j in range(5)], noise=noise))


def informative_views(
    P: int = 2,
    N: int = 1000,
    R: int = 0,
    seed: int = 0,
    *,
    M: int = 10,
    spread: float = 0.06,
    separation: float = 0.25,
    label_noise: float = 0.0,
) -> pd.DataFrame:
    """Generate two classes; each row shows its class in one of P views (pairs of features).

    In its view, a row is in one of four normal clusters, two per class; other features are U(0, 1).

    Parameters
    ----------
    P, N, R : int, default=2, 1000, 0
        Number of informative views, of rows per view, and of rows without any informative view
        (uniform features, random label).
    seed : int, default=0
    M : int, default=10
        Number of features.
    spread, separation : float, default=0.06, 0.25
        Standard deviation of a cluster in each feature; smallest distance between centres.
    label_noise : float, default=0.0
        Share of the rows with a flipped label, chosen at random.

    Returns
    -------
    DataFrame
        P N + R rows in the order of the views, the R rows last. Columns: x1..xM, and y (0 or 1).
        attrs: `views` (pairs of names, disjoint if 2 P <= M); `centres` (four points per view, the
        first two of class 0); `rows` ([start, stop) of each view).

    See Also
    --------
    informative_views_r, ripr

    References
    ----------
    Informative projection recovery, Sect. 2.3 and the appendix on artificial data. The centres,
    which it does not give, are uniform on [0.15, 0.85]^2, at least `separation` apart.

    Examples
    --------
    >>> import lodim as ld
    >>> ld.informative_views(P=2, N=50, R=10).attrs["rows"]
    [[0, 50], [50, 100]]
    """
    rng, P, N, M = _generator(seed), whole("P", P), whole("N", N, most=MOST_ROWS), whole("M", M)
    spread, separation = number("spread", spread, 0), number("separation", separation, 0)
    label_noise = number("label_noise", label_noise, 0, 1)
    n = P * N + whole("R", R, 0, MOST_ROWS)
    views = _draw_views(rng, P, range(M))
    X, y, centres = rng.random((n, M)), rng.integers(0, 2, n), []
    for k, view in enumerate(views):
        rows = slice(k * N, (k + 1) * N)
        for _ in range(1000):
            four = rng.uniform(0.15, 0.85, (4, 2))
            if pdist(four).min() >= separation:
                break
        else:
            room = f"separation must leave room for four blobs, not {separation}"
            raise ArgumentError(f"{room}: try 0.25")
        centres.append(four)
        blob = 2 * y[rows] + rng.integers(0, 2, N)
        X[rows, view] = centres[-1][blob] + spread * rng.standard_normal((N, 2))
    flipped = rng.permutation(n)[: round(label_noise * n)]
    y[flipped] = 1 - y[flipped]
    truth = dict(views=_names(views), rows=[[k * N, (k + 1) * N] for k in range(P)])
    return _frame(X, y, truth | dict(centres=[c.tolist() for c in centres]))


def informative_views_r(
    n: int = 1000, P: int = 2, seed: int = 0, *, M: int = 20, noise: float = 0.1
) -> pd.DataFrame:
    """Generate regression data: the first feature selects the two-feature view that determines y.

    Parameters
    ----------
    n, P : int, default=1000, 2
        Number of rows and of informative views.
    seed : int, default=0
    M : int, default=20
        Number of features; the first one selects the view.
    noise : float, default=0.1
        Standard deviation of the normal noise.

    Returns
    -------
    DataFrame
        n rows. x1 is uniform on [1, P + 1), x2..xM are uniform on [0, 1]. The integer part j of x1
        selects a view, with features u and v: y = sin(pi (u + a_j)) + 2 (v - b_j)^2 + noise.
        attrs: `views` (pairs of names), `coefficients` (pairs (a_j, b_j)), `noise`.

    See Also
    --------
    informative_views, ripr

    References
    ----------
    Informative projection recovery, appendix on regression; the functions of the views are our own.

    Examples
    --------
    >>> import lodim as ld
    >>> ld.informative_views_r(100, M=5).shape
    (100, 6)
    """
    rng, n, P, M = _generator(seed), _rows(n), whole("P", P), whole("M", M)
    noise = number("noise", noise, least=0)
    views = _draw_views(rng, P, range(1, M))
    X, coefficients = rng.random((n, M)), rng.random((P, 2))
    X[:, 0] = 1 + P * X[:, 0]
    selected = np.minimum(X[:, 0].astype(np.int64), P) - 1
    u, v = np.take_along_axis(X, np.array(views)[selected], axis=1).T
    a, b = coefficients[selected].T
    y = np.sin(np.pi * (u + a)) + 2 * (v - b) ** 2 + noise * rng.standard_normal(n)
    return _frame(X, y, dict(views=_names(views), coefficients=coefficients.tolist(), noise=noise))


def _draw_views(rng, P, features):
    """Draw P different pairs of `features`; no feature is in two pairs if there are enough."""
    features = np.asarray(features)
    if features.size >= 2 * P:
        return [sorted(pair) for pair in rng.permutation(features)[: 2 * P].reshape(P, 2).tolist()]
    pairs = list(combinations(features.tolist(), 2))
    if len(pairs) < P:
        raise ArgumentError(f"{features.size} features make {len(pairs)} views, not P = {P}")
    return [list(pairs[k]) for k in rng.permutation(len(pairs))[:P]]


def _names(views):
    return [[f"x{j + 1}" for j in view] for view in views]


def _unit_vector(rng, p):
    u = rng.standard_normal(p)
    return u / np.linalg.norm(u)


def _generator(seed, stream=0):
    # Separate streams: labels and rotation do not depend on the number of draws before them.
    return np.random.default_rng([as_seed(seed), stream])


def _rows(n, least=1):
    return whole("n", n, least, MOST_ROWS)


def _frame(X, y, truth):
    df = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(X.shape[1])])
    df["y"] = y
    # Plain lists, never arrays: pandas compares and copies attrs, and arrays have no truth value.
    df.attrs.update(truth)
    return df
