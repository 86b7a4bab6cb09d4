"""What a command says, but for the line about compiling: only caches that are cold bring it."""

from __future__ import annotations

COMPILING = "Compiling (first use on this machine"


def but_for_compiling(text: str) -> str:
    """Return what was said without that line."""
    return "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith(COMPILING)
    )
