"""Who pays what? Costs, claims and networks are games, and fair shares are their values."""

from coalitions import (
    bankruptcy_game,
    core_membership,
    cost_game,
    minimum_cost_tree_game,
    nucleolus,
    shapley,
)

# Three towns can build water plants alone, in pairs, or all together.
costs = {
    "Ahn": 11, "Berg": 7, "Cleve": 8,
    ("Ahn", "Berg"): 15, ("Ahn", "Cleve"): 14, ("Berg", "Cleve"): 13,
    ("Ahn", "Berg", "Cleve"): 20,
}  # fmt: skip
game = cost_game(costs)
shares = shapley(game).values
print("the plant: ", dict(zip(game.labels, shares.round(2).tolist(), strict=True)))

# Would a pair be better off alone? Ask the core of what is saved; the nucleolus is in it.
alone, savings = [11, 7, 8], cost_game(costs, savings=True)
for rule, paid in (("Shapley", shares), ("nucleolus", alone - nucleolus(savings).payoff)):
    leaving = core_membership(savings, alone - paid).blocking
    print(f"  by {rule}: {paid.round(2)}; better off alone:", leaving and [*leaving])

# An estate of 200, claims of 100, 200 and 300: the nucleolus is the division of the Talmud.
print("the estate:", nucleolus(bankruptcy_game([100, 200, 300], estate=200)).payoff.round(2))

# Three houses hang on one source; links cost as the matrix says (the source comes first).
links = [[0, 6, 5, 9], [6, 0, 2, 3], [5, 2, 0, 8], [9, 3, 8, 0]]
pipes = minimum_cost_tree_game(links, names=["Ann", "Bob", "Cleo"])
print("the pipes by Bird's rule:", pipes.bird_shares(), "by Shapley:", shapley(pipes).values)
