"""Errors of many runs in one small file: a line for each game, budget and estimator.

A run is a dictionary with game, budget, seed, error and more; the seeds of a line are 0, 1, 2, …
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np

OURS = "auto"
LISTED = ("error", "covered", "seconds")


def entries(path: Path) -> list[dict]:
    """Return the runs of a file that has a line for each."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_kept(folder: Path, kept: Path) -> None:
    """Write the runs of a folder, with three digits."""
    lines = defaultdict(list)
    for run in entries(folder / "ours.jsonl") + entries(folder / "peers.jsonl"):
        lines[run.get("peer", OURS), run["budget"], run["game"]].append(run)
    text = ""
    for (name, budget, game), found in sorted(lines.items()):
        found = sorted(found, key=lambda run: run["seed"])
        assert [run["seed"] for run in found] == list(range(len(found))), (name, budget, game)
        listed = {k: [rounded(run[k]) for run in found] for k in LISTED if k in found[0]}
        listed["seconds"] = rounded(float(np.median(listed["seconds"])))
        line = {"by": name, "budget": budget, "game": game} | listed
        text += json.dumps(line, separators=(",", ":")) + "\n"
    unfinished = kept.with_suffix(".part")
    unfinished.write_text(text)
    unfinished.rename(kept)


def read_kept(folder: Path, kept: Path) -> None:
    """Give a folder without runs those that were kept; all of a line have its median seconds."""
    if not kept.exists() or any(folder.glob("*.jsonl")):
        return
    folder.mkdir(parents=True, exist_ok=True)
    runs = {"ours": "", "peers": ""}
    for line in entries(kept):
        name = line.pop("by")
        peer = {} if name == OURS else {"peer": name}
        for seed in range(len(line["error"])):
            own = {k: line[k][seed] if isinstance(line[k], list) else line[k] for k in line}
            runs["peers" if peer else "ours"] += json.dumps({"seed": seed} | peer | own) + "\n"
    for file, text in runs.items():
        (folder / f"{file}.jsonl").write_text(text)


def rounded(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.3g}")
