"""Six hospitals in one CSV, in two groups that nobody knows: who should learn with whom?"""

import json
from pathlib import Path

import numpy as np

from learners import run

# Any table will do: a column to predict, one that says whose row it is, and others. Numbers are
# scaled, and gaps filled, inside each hospital; wards are categories.
rng = np.random.default_rng(0)
names = [f"lab{k}" for k in range(8)]
lines = ["hospital,ward," + ",".join(names) + ",died"]
for number, hospital in enumerate(("Ash", "Birch", "Cedar", "Elm", "Fir", "Oak")):
    for _ in range(110):
        labs = rng.normal(50, 10, len(names))
        risk = (labs[:4] if number < 3 else labs[4:]).sum() / 10 - 20  # what matters differs
        died = rng.random() < 1 / (1 + np.exp(-2 * risk))
        cells = ["" if rng.random() < 0.03 else f"{lab:.1f}" for lab in labs]  # some are missing
        ward = rng.choice(["heart", "burns"])
        lines.append(f"{hospital},{ward},{','.join(cells)},{int(died)}")
Path("patients.csv").write_text("\n".join(lines))

settings = {"dataset": "patients.csv", "target": "died", "client_column": "hospital"}
settings |= {"train_size": 50, "test_size": 60, "validation_share": 0.4, "metric": ["auroc"]}
settings |= {"model": "linear", "rounds": 10, "local_epochs": 1}
methods = {"local": {}, "fedavg": {}, "cffl": {"synergy": "cos", "cos_on": "validation"}}
for algorithm, options in methods.items():
    asked = settings | {"algorithm": algorithm, "options": options}
    result = run(asked, f"runs/{algorithm}", force=True, tell=None if options else print)
    print(f"{algorithm:<8} mean AUROC {result.metrics['metrics']['auroc']['mean']:.3f}")

last = json.loads(Path("runs/cffl/structures.jsonl").read_text().splitlines()[-1])
for coalition in last["coalitions"]:
    print("together:", ", ".join(result.client_names[hospital] for hospital in coalition))
