"""The coefficients of each group of a penalty."""

import numpy as np


def members_of(groups):
    """Positions of the coefficients of each group."""
    return np.split(groups.member, groups.start[1:-1])
