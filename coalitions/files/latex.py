r"""Text as LaTeX shows it: what would be a command, and letters that pdflatex does not know."""

from __future__ import annotations

import re

_COMMANDS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip

_MATHEMATICS = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\varepsilon",
    "ζ": r"\zeta", "η": r"\eta", "θ": r"\theta", "ι": r"\iota", "κ": r"\kappa", "λ": r"\lambda",
    "μ": r"\mu", "ν": r"\nu", "ξ": r"\xi", "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma", "τ": r"\tau",
    "υ": r"\upsilon", "φ": r"\varphi", "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega",
    "Γ": r"\Gamma", "Δ": r"\Delta", "Θ": r"\Theta", "Λ": r"\Lambda", "Ξ": r"\Xi", "Π": r"\Pi",
    "Σ": r"\Sigma", "Φ": r"\Phi", "Ψ": r"\Psi", "Ω": r"\Omega",
    "±": r"\pm", "−": "-", "×": r"\times", "·": r"\cdot", "√": r"\surd", "∞": r"\infty",
    "<": "<", ">": ">", "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx",
    "→": r"\to", "←": r"\leftarrow", "∈": r"\in", "|": "|", "‖": r"\Vert", "⌈": r"\lceil",
    "⌉": r"\rceil", "⁻": "^{-}", "¹": "^{1}", "²": "^{2}", "³": "^{3}",
    "₀": "_{0}", "₁": "_{1}", "₂": "_{2}", "₃": "_{3}",
}  # fmt: skip

_SIGNS = {"–": "--", "—": "---", "…": r"\ldots{}", "’": "'", "“": "``", "”": "''", "\xa0": "~"}

_LATEX = _COMMANDS | {sign: f"${name}$" for sign, name in _MATHEMATICS.items()} | _SIGNS


def latex_text(text: str) -> str:
    r"""Return text as LaTeX shows it; a hyphen or a plus before a number is its sign.

    Examples
    --------
    >>> print(latex_text("FedC²I, γ = 0.5 & 32×32"))
    FedC$^{2}$I, $\gamma$ = 0.5 \& 32$\times$32
    >>> print(latex_text("-1.50 ± 0.02"))
    $-$1.50 $\pm$ 0.02
    """
    sign = re.match(r"[+-](?=\d)", text)
    if sign:
        return f"${sign[0]}${latex_text(text[1:])}"
    return "".join(_LATEX.get(letter, letter) for letter in text)
