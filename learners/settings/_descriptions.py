"""What docstrings say about the fields of a class, as text without mark-up."""

from __future__ import annotations

import inspect
import re

_GREEK = dict(
    alpha="α", beta="β", gamma="γ", delta="δ", epsilon="ε", lam="λ", eta="η", theta="θ", xi="ξ",
    sigma="σ", tau="τ", phi="φ", varphi="φ", psi="ψ", sqrt="√", ne="≠",
)  # fmt: skip
_GREEK["lambda"] = _GREEK.pop("lam")


def described(kind: type) -> dict[str, str]:
    """Return what a class's docstring says about its fields, by name, without mark-up.

    The sections Parameters and Attributes are read, numpy style; an entry may have several names.
    """
    texts: dict[str, str] = {}
    lines = inspect.cleandoc(kind.__doc__ or "").splitlines()
    heading = ""
    names: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if following and set(following) == {"-"}:
            heading, names = line.strip(), []
        elif heading in ("Parameters", "Attributes") and set(line) != {"-"}:
            if line and not line.startswith(" "):
                names = [name.strip() for name in line.split(",")]
                texts |= dict.fromkeys(names, "")
            for name in names if line.startswith(" ") else ():
                texts[name] = f"{texts[name]} {line.strip()}".strip()
    return {name: plain(text) for name, text in texts.items()}


def plain(text: str) -> str:
    r"""Return a docstring's text without mark-up: no roles and citations, formulas as letters.

    Examples
    --------
    >>> plain(r"``fo``: the step :math:`1 / (\lambda + 1/\text{lr})` of `lr` [Wu2024]_.")
    'fo: the step 1 / (λ + 1/lr) of lr.'
    >>> plain(r"the distance :math:`\lVert w_i - w_j \rVert`")
    'the distance ‖w_i - w_j‖'
    """

    def formula(match: re.Match[str]) -> str:
        letters = re.sub(r"\\text\{(\w+)\}", r"\1", match[1])
        letters = re.sub(r"\\lVert\s*|\s*\\rVert", "‖", letters)
        letters = re.sub(r"\\([a-z]+)", lambda name: _GREEK.get(name[1], name[1]), letters)
        return re.sub(r"[{}\\]", "", letters)

    text = re.sub(r":math:`([^`]*)`", formula, text)
    text = re.sub(r"``?([^`]*)``?", r"\1", text)
    return re.sub(r" \[\w+\]_", "", text)
