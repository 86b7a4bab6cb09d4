"""Hypothesis strategies: small graphs with everything that breaks solvers in them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from coalitions import SynergyGraph

WEIGHTS = {
    "ties": st.integers(-1, 1).map(float),
    "integers": st.integers(-9, 9).map(float),
    "decimals": st.integers(-20, 20).map(lambda k: k / 10),
    "floats": st.floats(-1, 1, allow_nan=False, allow_subnormal=False, width=64),
    "negative": st.integers(-5, 0).map(float),
    "positive": st.integers(0, 5).map(float),
    "zero": st.just(0.0),
}


@st.composite
def synergy_graphs(draw, min_players=1, max_players=6, scales=(1.0, 1e-9, 1e9)):
    n = draw(st.integers(min_players, max_players))
    kind = draw(st.sampled_from(sorted(WEIGHTS)))
    n_pairs = n * (n - 1) // 2
    pairs = draw(st.lists(WEIGHTS[kind], min_size=n_pairs, max_size=n_pairs))
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = pairs
    matrix *= draw(st.sampled_from(scales))
    return SynergyGraph(matrix + matrix.T)


@st.composite
def label_vectors(draw, n_players):
    return np.array(
        draw(st.lists(st.integers(0, n_players), min_size=n_players, max_size=n_players))
    )
