"""Clients whose replies were refused or lost, why, and for how long: each of them is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

STRIKES = 3
"""Rounds in a row with a refused reply; then a client is not asked any more."""


@dataclass
class ClientFailures:
    """What went wrong with the clients of a run: in this round, and so far.

    Attributes
    ----------
    refused
        Clients of which a reply was refused in this round, and why.
    struck
        Those of them whose refused reply was to the method: it counts as a strike.
    unreachable
        Clients whose replies are lost in this round once they have trained.
    lost
        Those of them who have.
    strikes
        For clients whose last reply was refused: in how many rounds in a row, of those they took
        part in.
    quarantined
        Clients that are not asked any more, and why.
    """

    refused: dict[int, str] = field(default_factory=dict)
    struck: dict[int, str] = field(default_factory=dict)
    unreachable: frozenset[int] = frozenset()
    lost: set[int] = field(default_factory=set)
    strikes: dict[int, int] = field(default_factory=dict)
    quarantined: dict[int, str] = field(default_factory=dict)

    def begin_round(self, unreachable: frozenset[int]) -> None:
        """Forget the round before; strikes and quarantine stay."""
        self.refused, self.struck = {}, {}
        self.unreachable, self.lost = unreachable, set()

    def lose(self, trained: Iterable[int]) -> None:
        """Lose the replies of clients that have trained and cannot be reached."""
        self.lost |= self.unreachable & set(trained)

    def refuse(self, reasons: Mapping[int, str]) -> dict[int, str]:
        """Remember which replies to the method are refused, and return them; lost ones are not."""
        reasons = {c: reason for c, reason in reasons.items() if c not in self.lost}
        self.refused |= reasons
        self.struck |= reasons
        return reasons

    def quarantine_unregistered(self, reasons: Mapping[int, str]) -> None:
        """Remember who did not say at the start what it has, and why: it is never asked again."""
        for client, reason in sorted(reasons.items()):
            self.quarantined[client] = f"it did not register: {reason}"

    def end_round(self, present: Iterable[int]) -> None:
        """Count the strikes of those present, without clients whose replies were lost."""
        for client in present:
            if client in self.lost:
                continue
            if client not in self.struck:
                self.strikes.pop(client, None)
                continue
            self.strikes[client] = self.strikes.get(client, 0) + 1
            if self.strikes[client] >= STRIKES:
                self.quarantined[client] = self.struck[client]

    def hopeless(self, clients: Iterable[int]) -> bool:
        """Tell whether the last reply of every client was refused, this round included."""
        return all(c in self.struck or c in self.strikes or c in self.quarantined for c in clients)

    def document(self) -> dict[str, Any]:
        """Return it for the round's line of metrics."""
        return {
            "strikes": {str(client): n for client, n in sorted(self.strikes.items())},
            "quarantined": {str(client): why for client, why in sorted(self.quarantined.items())},
        }

    def recall(self, line: Mapping[str, Any]) -> None:
        """Be as after the round of a line of metrics."""
        self.strikes = {int(client): n for client, n in line.get("strikes", {}).items()}
        self.quarantined = {int(client): why for client, why in line.get("quarantined", {}).items()}


def left_out(history: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return which clients' replies were refused in a run, by client.

    Each has `client`, `rounds` in which a reply of it was refused, the last `reason`, and
    `quarantined`: the first round in which it was not asked any more, None if there was none.

    Examples
    --------
    >>> left_out([{"round": 1, "refused": {"4": "model is missing"}}, {"round": 2, "refused": {}}])
    [{'client': 4, 'rounds': 1, 'reason': 'model is missing', 'quarantined': None}]
    """
    entries: dict[int, dict[str, Any]] = {}

    def entry(client: str) -> dict[str, Any]:
        new = {"client": int(client), "rounds": 0, "reason": "", "quarantined": None}
        return entries.setdefault(int(client), new)

    for line in history:
        for client, reason in line.get("refused", {}).items():
            entry(client)["rounds"] += 1
            entry(client)["reason"] = reason
        for client, reason in line.get("quarantined", {}).items():
            entry(client)["reason"] = reason
            if entry(client)["quarantined"] is None:
                # Three strikes count from the next round on; who did not register was never asked.
                entry(client)["quarantined"] = line["round"] + (client in line["strikes"])
    return [entries[client] for client in sorted(entries)]


def sentence(entry: Mapping[str, Any], n_rounds: int) -> str:
    """Return an entry of `left_out` in words.

    Examples
    --------
    >>> sentence({"client": 4, "rounds": 3, "reason": "model is missing", "quarantined": 4}, 20)
    'client 4 in 3 of 20 rounds (model is missing), not asked from round 4 on'
    """
    words = f"client {entry['client']} in {entry['rounds']} of {n_rounds} rounds"
    words += f" ({entry['reason']})"
    last = entry["quarantined"]
    return words if last is None or last > n_rounds else f"{words}, not asked from round {last} on"
