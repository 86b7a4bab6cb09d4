"""Cases of `digests`: games of all kinds, shares and structures of them by every method."""

import itertools
import json
import re
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from digested_graphs import FEW, demands, graph

import coalitions as co
from solvers import solve_game

PAIR_METHODS = {
    "shapley": ("chains", "exact", "portfolio", "stratified"),
    "banzhaf": ("exact", "msr", "portfolio", "regression"),
}
EVALUATIONS = {"smooth": (150, 800), "unanimity": (130, 400), "many": (500, 7000)}
"""Budgets of the games that are sampled."""


def games():
    """Return games of all kinds: tables, formulas, compiled ones and functions."""
    rng = np.random.default_rng(5)
    table = rng.normal(size=1 << 9)
    table[0] = 0
    tenths = np.round(rng.random(1 << 6), 1)
    weights = rng.normal(size=14)
    costs = {(f"p{i}",): 3 + i for i in range(4)}
    costs |= {pair: 5.0 for pair in itertools.combinations([f"p{i}" for i in range(4)], 2)}
    costs |= {group: 7.0 for group in itertools.combinations([f"p{i}" for i in range(4)], 3)}
    return {
        "table": co.TableGame(table),
        "base": co.TableGame(tenths, labels="abcdef"),
        "graph": graph("normal", 12).game(),
        "airport": co.AirportGame(np.arange(1, 11) ** 1.5),
        "voting": co.VotingGame([5, 4, 3, 3, 2, 1, 1, 1], 11),
        "unanimity": co.UnanimityGame(10, [[0, 1], [2, 3, 4], [5], [1, 6, 8, 9]], [1, -2, 0.5, 3]),
        "smooth": co.FunctionGame(partial(_smooth, weights), 14),
        "many": co.FunctionGame(partial(_smooth, np.tile(weights, 3)), 42),
        "costs": co.cost_game({**costs, ("p0", "p1", "p2", "p3"): 9.0}, savings=True),
        "assignment": co.assignment_game(rng.integers(0, 9, (3, 4))),
        "bankruptcy": co.bankruptcy_game([100, 200, 300], 250),
        "flow": co.flow_game(
            [("s", "a", 3, "x"), ("a", "t", 2, "y"), ("s", "t", 1, "z")], "s", "t"
        ),
        "tree": co.minimum_cost_tree_game(_distances(rng.random((6, 2)))),
        "ensemble": co.ensemble_game(rng.integers(0, 2, (6, 30)), rng.integers(0, 2, 30)),
    }


def _smooth(weights, rows):
    # Added up in order: a product of matrices may round differently where rows come in batches.
    total = np.zeros(len(rows))
    for player, weight in enumerate(weights):
        total += rows[:, player] * weight
    return np.sqrt(np.abs(total)) + 0.3 * rows[:, 0] * rows[:, -1]


def _distances(points):
    return np.linalg.norm(points[:, None] - points[None], axis=2)


def valuing():
    all_games = games()
    for name, game in all_games.items():
        yield f"shapley/auto/{name}", partial(co.shapley, game)
        if game.n_players <= 10:
            yield f"values/{name}", partial(_concepts, game)
            yield f"interactions/whole/{name}", partial(_every_index, game)
    for name, budgets in EVALUATIONS.items():
        game, most = all_games[name], budgets[-1]
        small = game.n_players <= 14
        for method in co.ESTIMATORS:
            for budget in budgets:
                if method != "exact":
                    ask = partial(co.shapley, game, method, budget=budget, seed=budget)
                    yield f"shapley/{method}/{name}/{budget}", ask
        for method in co.SEMIVALUE_ESTIMATORS:
            if method != "exact" or small:
                budget = 1 << 14 if method == "exact" else 200
                asked = {"method": method, "budget": budget, "seed": 3}
                yield f"banzhaf/{method}/{name}", partial(co.banzhaf, game, **asked)
                if method not in ("msr", "regression"):
                    yield f"beta/{method}/{name}", partial(co.beta_shapley, game, 4, 1, **asked)
        for index, methods in PAIR_METHODS.items():
            for method in methods:
                if method != "exact" or small:
                    budget = 1 << 14 if method == "exact" else max(900, most)
                    asked = {"method": method, "budget": budget}
                    ask = partial(co.interactions, game, index, coalitions="pairs", **asked)
                    yield f"pairs/{method}-{index}/{name}", ask
        for index in co.INDICES:
            ask = partial(co.interactions, game, index, method="portfolio", budget=120, seed=1)
            if name != "many":
                yield f"interactions/portfolio/{index}/{name}", ask
        for synergy in co.SYNERGIES:
            ask = partial(co.estimate_synergy, game, synergy, budget=950, seed=2)
            yield f"synergy/{synergy}/{name}", ask
        yield f"top/{name}", partial(co.top_k, game, 3, budget=2000)
        yield f"shapley/error/{name}", partial(co.shapley, game, budget=2000, target_error=0.05)
        yield f"shapley/batches/{name}", partial(co.shapley, game, "svarm", 500, batch_size=7)
    kernel = graph("normal", 60).game()
    for method in ("antithetic", "leverage", "permutation", "truncated", "svarm", "owen"):
        yield f"shapley/compiled/{method}", partial(co.shapley, kernel, method, 3000, seed=8)
    options = {"truncated": {"tolerance": 0.1}, "owen": {"levels": 4}, "gtg": {"within_round": 0.1}}
    for method, chosen in options.items():
        ask = partial(co.shapley, all_games["smooth"], method, 300, **chosen)
        yield f"shapley/options/{method}", ask
    yield "shapley/leverage/5000", partial(co.shapley, all_games["many"], budget=5000)
    yield "shapley/difference", partial(_difference, all_games["smooth"])
    for index in co.INDICES:
        yield f"interactions/exact/{index}", partial(co.interactions, all_games["table"], index, 3)
    yield "interaction/coalitions", partial(_coalitions, all_games["smooth"])
    yield "partitions", partial(_partitions, 6)


def _concepts(game):
    """Return all shares of a small game; what is not there for it (no core point) by its error."""
    n = game.n_players
    structure = co.CoalitionStructure.from_labels(np.arange(n) % 3)
    path = [(i, i + 1) for i in range(n - 1)]
    concepts = (
        partial(co.banzhaf, game),
        partial(co.semivalue, game, np.arange(1, n + 1)),
        partial(co.beta_shapley, game, 1, 16),
        partial(co.myerson, game, path),
        partial(co.shapley, co.GraphRestrictedGame(game, path)),
        partial(co.owen, game, structure),
        partial(co.payoffs, game, structure),
        partial(co.nucleolus, game),
        partial(co.nucleolus, game, domain="preimputations"),
        partial(co.least_core, game),
        partial(co.core_point, game),
        partial(co.core_membership, game, np.full(n, 1.0)),
        partial(co.deviations, game, structure),
        partial(co.normalized, game, scale=True),
        partial(co.restricted, game, [0, n - 1]),
        partial(co.shapley, co.cached(game), "permutation", 40),
        partial(co.leave_one_out, game),
    )
    return [_or_error(concept) for concept in concepts]


def _or_error(concept):
    try:
        return concept()
    except co.CoalitionError as error:
        return type(error).__name__


def _every_index(game):
    return [co.interactions(game, index, 3) for index in (*co.INDICES, "shapley", "banzhaf")]


def _difference(game):
    one, other = (co.shapley(game, "permutation", 200, seed=seed) for seed in (0, 1))
    return one.difference(other), one.rank_correlation(other), one.interval(), one.labels


def _coalitions(game):
    groups = [(0, 1), (2, 5, 7), (3,)]
    return [
        co.interactions(game, index, coalitions=groups, budget=800)
        for index in ("shapley", "banzhaf")
    ]


def _partitions(n):
    return list(co.all_partitions(n)), co.partition_labels(n), co.bell_number(60)


def models():
    """Games of features and of data, which take a model to fit."""
    rng = np.random.default_rng(9)
    rows = rng.normal(size=(60, 5))
    classes = (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0).astype(int)
    parts = rows[:40], classes[:40], rows[40:], classes[40:]
    groups = np.arange(40) % 6

    def predict(inputs):
        return inputs[:, 0] - 2 * inputs[:, 1] * inputs[:, 2]

    def of(make, *arguments, **options):
        game = make(*arguments, **options)
        return co.shapley(game, budget=100), co.banzhaf(game, budget=200)

    yield "features", partial(of, co.feature_game, predict, rows[0], rows[:20])
    yield "features/many", lambda: [*map(co.shapley, co.feature_games(predict, rows[:3], rows[:9]))]
    yield "neighbours", partial(of, co.knn_game, *parts)
    yield "neighbours/exact", partial(co.knn_shapley, *parts, k=3)
    for model in co.DATA_MODELS:
        for make, options in (
            (co.data_game, {"units": "groups", "groups": groups}),
            (co.column_game, {}),
        ):
            yield f"data/{make.__name__}/{model}", partial(_fitted, make, model, parts, options)


def _fitted(make, model, parts, options):
    untrained = co.DATA_MODELS[model](True)
    return co.shapley(make(untrained, *parts, **options), budget=40)


def structures():
    """Best structures of games, with demands; and games from files."""
    for kind in FEW:
        yield f"game/graph/{kind}", lambda kind=kind: solve_game(graph(kind, 10, 6).game())
    for name, asked in demands(9).items():
        yield f"game/demands/{name}", partial(_game_with, asked)
    for name, game in games().items():
        if game.n_players <= 12:
            yield f"game/{name}", partial(solve_game, game)
    yield "files/game", partial(_game_file)
    yield "files/stored", partial(_stored)


def _game_with(asked):
    """Return the best structure of a game, whose players have no names."""

    def number(player):
        return int(re.sub("^p", "", str(player)))

    asked = dict(asked)
    for name in ("must_link", "cannot_link", "at_least_one_of"):
        if name in asked:
            asked[name] = [tuple(map(number, group)) for group in asked[name]]
    if isinstance(asked.get("weights"), dict):
        asked["weights"] = list(asked["weights"].values())
    return solve_game(games()["table"], **asked)


def _game_file():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "game.json")
        path.write_text(json.dumps({"players": ["a", "b"], "values": [0, 1, 2, 5]}))
        return co.TableGame.read(path)


def _stored():
    with tempfile.TemporaryDirectory() as folder:
        kept = (co.stored(games()["smooth"], folder, name="smooth") for _ in range(2))
        return [co.shapley(game, "permutation", 60) for game in kept]
