"""Results as the objects of shap and shapiq, for their plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coalitions.errors import InvalidInputError
from coalitions.extras import needed
from coalitions.game import Game, evaluate, labels_of, players_of
from coalitions.problems.features import FeatureGame
from coalitions.values.estimate import Estimate, Interactions


def to_shap(result: Estimate | Sequence[Estimate], game: Game | Sequence[Game]) -> Any:  # noqa: ANN401
    """Return a `shap.Explanation` of a row, or of many, for shap's plots.

    Parameters
    ----------
    result
        The values, one `Estimate`; or a list of them, one for each game.
    game
        The game they belong to, or the list of games (`feature_games`). Its value of the empty
        coalition, one evaluation, is the base value.
    """
    needed("shap")
    import shap  # type: ignore[import-not-found, unused-ignore]

    if isinstance(result, Estimate):
        return shap.Explanation(**_fields(result, game))
    fields = [_fields(one, its) for one, its in _paired(result, game)]
    if any(each["feature_names"] != fields[0]["feature_names"] for each in fields):
        raise InvalidInputError("the games have different players; explain them one by one")
    stacked = {
        name: None if fields[0][name] is None else np.array([each[name] for each in fields])
        for name in ("values", "base_values", "data", "error_std")
    }
    return shap.Explanation(**stacked, feature_names=fields[0]["feature_names"])


def to_shapiq(
    result: Estimate | Interactions | Sequence[Estimate | Interactions],
    game: Game | Sequence[Game],
) -> Any:  # noqa: ANN401
    """Return `shapiq.InteractionValues` of Shapley values or interactions, for shapiq's plots.

    Parameters
    ----------
    result
        The Shapley values of the players, or what `interactions` returned; or a list of them, one
        for each game. Then a list comes back, as shapiq's plots of many rows take it.
    game
        The game they belong to, or the list of games (`feature_games`). Its value of the empty
        coalition, one evaluation, is the baseline.
    """
    needed("shapiq")
    if isinstance(result, Estimate | Interactions):
        return _interaction_values(result, game)
    return [_interaction_values(one, its) for one, its in _paired(result, game)]


def _interaction_values(result: Estimate | Interactions, game: Any) -> Any:  # noqa: ANN401
    """Return the `shapiq.InteractionValues` of one game."""
    from shapiq import InteractionValues  # type: ignore[import-untyped, unused-ignore]

    n = players_of(game)
    scores: dict[tuple[int, ...], float]
    if isinstance(result, Interactions):
        if result.n_players != n:
            raise InvalidInputError(
                f"the result is about {result.n_players} players, but the game has {n}"
            )
        base = _empty(game)
        index, order, scores = result.index, result.order, {(): base, **result.mapping}
    else:
        fields = _fields(result, game)
        base, index, order = fields["base_values"], "SV", 1
        scores = {(): base, **{(k,): float(result.values[k]) for k in range(n)}}
    return InteractionValues(
        np.array(list(scores.values())),
        index=index,
        min_order=0,
        max_order=order,
        n_players=n,
        interaction_lookup={players: k for k, players in enumerate(scores)},
        estimated=result.method != "exact",
        estimation_budget=result.evaluations,
        baseline_value=base,
    )


def _paired(results: Sequence[Any], games: Any) -> list[tuple[Any, Game]]:  # noqa: ANN401
    """Return each result with its game; there must be as many."""
    if not isinstance(games, Sequence) or len(games) != len(results) or not results:
        raise InvalidInputError(f"there are {len(results)} results; give as many games, in order")
    return list(zip(results, games, strict=True))


def _empty(game: Game) -> float:
    return float(evaluate(game, np.zeros((1, players_of(game)), np.bool_))[0])


def _fields(result: Estimate, game: Any) -> dict[str, Any]:  # noqa: ANN401 (a game, or a list by mistake)
    n = players_of(game)
    if result.values.shape != (n,):
        raise InvalidInputError(
            f"the result has shape {result.values.shape}, but the game has {n} players; give the"
            " values of its players"
        )
    data = None
    if isinstance(game, FeatureGame) and all(len(features) == 1 for features in game.players):
        data = game.row[[features[0] for features in game.players]]
    return {
        "values": result.values,
        "base_values": _empty(game),
        "data": data,
        "error_std": result.stderr,
        "feature_names": list(labels_of(game)),
    }
