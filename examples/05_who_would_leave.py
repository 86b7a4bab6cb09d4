"""From a game to a graph to teams, and the question who would rather be elsewhere."""

import numpy as np

from coalitions import FunctionGame, estimate_synergy, find_deviation, payoffs
from solvers import solve

people = ["ann", "bob", "cleo", "dan", "eve", "fay"]
skills = np.array([[3, 0], [2, 1], [0, 3], [1, 2], [3, 1], [0, 2]])


def worth(coalitions: np.ndarray) -> np.ndarray:
    """Return what teams earn: both skills are needed, and every meeting costs something."""
    first, second = (coalitions @ skills).T
    size = coalitions.sum(axis=1)
    return first * second - 0.5 * size**2


game = FunctionGame(worth, len(people))
synergy = estimate_synergy(game, "shapley", names=people)
teams = solve(synergy, max_size=3)
print("teams:", [[people[k] for k in block] for block in teams.structure])
shares = payoffs(game, teams.structure)
print("each gets:", {name: round(share, 2) for name, share in shares.named.items()})

for notion in ("nash", "individual", "core"):
    move = find_deviation(game, teams.structure, notion)
    if move is None:
        print(f"{notion}: stable")
    else:
        movers = ", ".join(people[k] for k in move.movers)
        print(f"{notion}: {movers} would rather be in {[people[k] for k in move.coalition]}")
