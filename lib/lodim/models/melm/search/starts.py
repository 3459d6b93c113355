"""Where searches begin: principal components, class means and covariances, and chance."""

import numpy as np

from lodim.engine import row_keys as keys

PCA, LDA, COVARIANCES, RANDOM = "pca", "lda", "covariances", "random"
LOST = 1e-6  # of the rows: a sum of them that is rounding


def starts(sample, basis, k, n_starts, seed, smallest=False):
    """n_starts projections theta (q, r, k), orthonormal in the coordinates searched, and names.

    The first are made of principal components, of the directions in which class means differ, and
    of those in which class covariances do; the others are random sums of rows, so that no basis in
    which the rows are given makes a difference. `smallest` takes the last principal components
    instead of the first.
    """
    mean, cov = moments(sample)
    named = [(PCA, _principal(mean, cov, sample, basis, k, smallest))]
    if sample.n_classes > 1:
        between = _between(mean, cov, sample, basis)
        apart = _apart(cov, sample, basis)
        of_means = between[:, : sample.n_classes - 1]
        named.append((LDA, np.column_stack([of_means, apart])[:, :k]))
        named.append((COVARIANCES, apart[:, :k]))
    rng = np.random.default_rng(seed)
    while len(named) < n_starts:
        named.append((RANDOM, _random(sample, basis, k, rng)))
    named = named[:n_starts]
    theta = np.stack([orthonormal(theta) for _, theta in named])
    return theta, [name for name, _ in named]


def _random(sample, basis, k, rng):
    """Random sums of the rows, isotropic in the coordinates searched; zero where rows cancel."""
    Z = sample.Z * (sample.weight / sample.weight.sum())
    theta = Z @ keys.waves(sample.key, k, rng)
    lost = np.linalg.norm(theta, axis=0) <= LOST * np.linalg.norm(Z)
    return np.where(lost, 0.0, theta) / basis.scale[:, None]


def moments(sample):
    """Means (C, r) and covariances (C, r, r) of the classes, as they are."""
    mean, cov = [], []
    for c in range(sample.n_classes):
        rows = slice(sample.start[c], sample.start[c + 1])
        z, w = sample.Z[:, rows], sample.weight[rows] / sample.size[c]
        mean.append(z @ w)
        apart = z - mean[-1][:, None]
        cov.append((apart * w) @ apart.T)
    return np.stack(mean), np.stack(cov)


def total_covariance(mean, cov, size):
    """Covariance of all rows, from means and covariances of the classes."""
    share = size / size.sum()
    apart = mean - share @ mean
    return np.einsum("c,cij->ij", share, cov) + (apart.T * share) @ apart


def orthonormal(V):
    """An orthonormal basis of the columns of V, (r, k); a column that depends on others is new."""
    Q, R = np.linalg.qr(V)
    lost = np.abs(np.diag(R)) <= 1e-12 * np.abs(R).max()
    if not lost.any():
        return Q
    rng = np.random.default_rng(0)
    filled = np.where(lost, rng.normal(size=V.shape), V)
    return np.linalg.qr(np.column_stack([V[:, ~lost], filled[:, lost]]))[0]


def _white(M, scale):
    return M / np.outer(scale, scale)


def _principal(mean, cov, sample, basis, k, smallest):
    """theta of the principal components of the features, in the directions that are kept."""
    total = total_covariance(mean, cov, sample.size)
    values, vectors = np.linalg.eigh(total)
    root = basis.back.T @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    own = np.linalg.eigh(root.T @ root)[1]
    return basis.back @ root @ (own[:, :k] if smallest else own[:, ::-1][:, :k])


def _between(mean, cov, sample, basis):
    """Directions in which class means differ, in units of the spread within: the most first."""
    share = sample.size / sample.size.sum()
    apart = (mean - share @ mean) / basis.scale
    return np.linalg.eigh((apart.T * share) @ apart)[1][:, ::-1] / basis.scale[:, None]


def _apart(cov, sample, basis):
    """Directions in which whitened class covariances differ from the pooled: the most first.

    For two classes they are the eigenvectors of the difference of the covariances.
    """
    share = sample.size / sample.size.sum()
    white = np.stack([_white(c, basis.scale) for c in cov])
    off = white - np.einsum("c,cij->ij", share, white)
    vectors = np.linalg.eigh(np.einsum("c,cij,cjk->ik", share, off, off))[1]
    return vectors[:, ::-1] / basis.scale[:, None]
