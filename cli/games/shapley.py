"""`coalitions shapley`: each player's fair share, which is `coalitions value` with one concept."""

from __future__ import annotations

from cli.games.value import value_command
from cli.terminal.flags import with_fixed

shapley_command = with_fixed(
    value_command,
    """Compute Shapley values: `coalitions value` with `--concept shapley`.

    Example: coalitions shapley examples/data/three_domains.csv
    """,
    concept="shapley",
    alpha=None,
    beta=None,
    structure=None,
    links=None,
    index=None,
    order=None,
)

COMMANDS = {"shapley": shapley_command}
