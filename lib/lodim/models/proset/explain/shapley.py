"""Shapley values of proset's estimates: terms move one after the other from a reference to a row.

G is a product over features, so the impact of a prototype when some terms are at the row and the
others at the reference is exp of a sum of two kinds of parts: no estimate is computed anew.
"""

import math

import numpy as np

MOST_EXACT = 12  # terms that move: 2^12 coalitions
MOST_NUMBERS = 2**22  # of a temporary


def half_squares(x, prototypes, player_of, n_players):
    """1/2 sum of (v_d (x_d - x_jd))^2 over the features of each player, x (A,) -> (M, players)."""
    v = prototypes.v[prototypes.batch - 1]
    member = np.equal.outer(player_of, np.arange(n_players)).astype(float)
    return 0.5 * (v * (x - prototypes.x)) ** 2 @ member


def game(at_row, at_reference, w, mixture):
    """The function from coalitions (C, P) bool to estimates (C, K).

    at_row, at_reference : (M, P) of `half_squares`; mixture : of the one row
    """

    def value(S):
        out = np.empty((len(S), mixture.targets.shape[1]))
        step = max(1, MOST_NUMBERS // max(1, len(w)))
        for lo in range(0, len(S), step):
            s = S[lo : lo + step].astype(float)
            W = w * np.exp(-(s @ at_row.T + (1.0 - s) @ at_reference.T))
            out[lo : lo + step] = mixture.estimate(W @ mixture.targets, W.sum(axis=1))
        return out

    return value


def exact(value, P):
    """Shapley values of P players by all coalitions, (P, K)."""
    code = np.arange(2**P)
    S = (code[:, None] >> np.arange(P)) & 1 == 1
    v, size = value(S), S.sum(axis=1)
    weight = np.array([1.0 / (P * math.comb(P - 1, s)) for s in range(P)])
    phi = np.empty((P, v.shape[1]))
    for i in range(P):
        without = code[~S[:, i]]
        phi[i] = weight[size[without]] @ (v[without | 1 << i] - v[without])
    return phi


def sampled(value, P, n_permutations, rng):
    """Shapley values by random orders, each with its reverse: means and standard errors, (P, K)."""
    pairs = []
    for _ in range(n_permutations):
        order = rng.permutation(P)
        pairs.append(0.5 * (_steps(value, order) + _steps(value, order[::-1])))
    pairs = np.array(pairs)
    error = pairs.std(axis=0, ddof=1) / math.sqrt(n_permutations)
    return pairs.mean(axis=0), error


def _steps(value, order):
    """What each player adds when it moves in this order, (P, K)."""
    P = len(order)
    S = np.zeros((P + 1, P), bool)
    S[:, order] = np.arange(P + 1)[:, None] > np.arange(P)
    steps = np.empty((P, value(S[:1]).shape[1]))
    steps[order] = np.diff(value(S), axis=0)
    return steps
