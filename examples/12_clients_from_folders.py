"""One folder for each client: arrays that a measuring station saved, and pictures by class."""

from pathlib import Path

import numpy as np
from PIL import Image

from learners import run

rng = np.random.default_rng(0)

# stations/NAME/train.npz and test.npz, each with inputs x and targets y: here a number to predict.
for name in ("coast", "forest", "hills"):
    folder = Path("stations", name)
    folder.mkdir(parents=True, exist_ok=True)
    for part, n in (("train", 60), ("test", 30)):
        x = rng.normal(size=(n, 5))
        np.savez(folder / f"{part}.npz", x=x, y=x @ [1, -2, 0, 0.5, 1] + rng.normal(0, 0.1, n))
result = run({"dataset": "stations/", "metric": ["r2", "rmse"], "rounds": 5})
for name, r2 in zip(
    result.client_names, result.metrics["metrics"]["r2"]["per_client"], strict=True
):
    print(f"{name:<8} R² {r2:.3f}")

# phones/NAME/CLASS/*.png: a fifth of each client's pictures is set aside for the test.
for name, brightness in (("ann", 40), ("bob", 120)):
    for label in ("stripes", "noise"):
        folder = Path("phones", name, label)
        folder.mkdir(parents=True, exist_ok=True)
        for k in range(20):
            pixels = rng.integers(0, brightness, (12, 12), dtype=np.uint8)
            if label == "stripes":
                pixels[::3] += 100
            Image.fromarray(pixels).save(folder / f"{k}.png")
result = run({"dataset": "phones/", "rounds": 5}, tell=print)
print(
    "accuracy of each phone:",
    dict(zip(result.client_names, result.per_client_test_accuracy, strict=True)),
)
