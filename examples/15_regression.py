"""A number to predict: how much more heat than usual six houses need, by weather and hour.

Houses of brick and of wood answer the weather differently, and nobody says which is which.
"""

import numpy as np

from learners import run

rng = np.random.default_rng(0)
brick, wood = np.array([-3.0, 0.5, 1.0]), np.array([-1.0, 2.5, -1.0])


def house(answer: np.ndarray, days: int) -> tuple[np.ndarray, np.ndarray]:
    weather = rng.normal(size=(days, 3)).astype(np.float32)  # warmth, wind, hour
    heat = weather @ answer + rng.standard_t(2, days)  # some days are far off
    return weather, heat.astype(np.float32)


data = {
    f"{kind} {number}": (house(answer, 25), house(answer, 100))
    for kind, answer in (("brick", brick), ("wood", wood))
    for number in (1, 2, 3)
}

settings = {"model": "linear", "loss": "huber", "rounds": 20, "lr": 0.1, "validation_share": 0.4}
cosine = {"synergy": "cos", "cos_on": "validation"}
for method, options in {"local": {}, "fedavg": {}, "cffl": cosine}.items():
    result = run(
        settings | {"algorithm": method, "options": options}, data=data, metrics=["mae", "r2"]
    )
    errors = result.metrics["metrics"]
    print(f"{method:7} mean error {errors['mae']['mean']:.2f}, R² {errors['r2']['mean']:.2f}")
