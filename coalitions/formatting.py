"""Names, numbers and lists as messages, tables and LaTeX show them.

What came from a file cannot steer a terminal: control characters are written out.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterable, Sequence

UNSHOWN = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ud800-\udfff]"
"""Control characters, those that turn the direction of writing, line separators, half characters.

Joiners stay: Persian names and many emoji have them.
"""


@functools.cache
def unshown() -> re.Pattern[str]:
    """Return the pattern of one such character, compiled when it is needed: that takes a while."""
    return re.compile(UNSHOWN)


def visible(text: str) -> str:
    r"""Return a text with what would act instead of being seen written out.

    Examples
    --------
    >>> visible("ann\x1b[2J")
    'ann\\x1b[2J'
    """
    return unshown().sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def composed(name: str) -> str:
    r"""Return a name with its accents as most programs write them (NFC); macOS parts them (NFD).

    Examples
    --------
    >>> composed("Jo\u0308rg") == "J\xf6rg"
    True
    """
    if name.isascii():
        return name
    import unicodedata

    return unicodedata.normalize("NFC", name)


def plain(name: str) -> str:
    """Return a name without accents and capitals, for comparisons that overlook them.

    Examples
    --------
    >>> plain("Jörg"), plain("Anaïs STRAẞER")
    ('jorg', 'anais strasser')
    """
    if name.isascii():
        return name.lower()
    import unicodedata

    parts = unicodedata.normalize("NFD", name.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part))


def fitting(text: str, most: int = 40) -> str:
    """Return a text that fits into a picture: visible, and cut after so many characters."""
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def visible_lines(text: str) -> str:
    """Return a text of our own making, whose line ends are meant, made visible line by line."""
    return "\n".join(map(visible, text.split("\n")))


def figure(number: float, digits: int = 10) -> str:
    """Return a number as a person writes it: not too many digits, no exponent unless it must be.

    Examples
    --------
    >>> figure(444.10000000000014), figure(12345678901.5), figure(1e300), figure(-0.0)
    ('444.1', '12345678902', '1e+300', '0')
    >>> figure(1234567.8, 6), figure(2 / 3, 6)
    ('1234568', '0.666667')
    """
    text = f"{number + 0.0:.{digits}g}"
    return f"{number:.0f}" if "e+" in text and abs(number) < 1e15 else text


def listed(names: Iterable[str]) -> str:
    """Return names in one line; one with a comma or a bar stands in quotes, as flags take it.

    Examples
    --------
    >>> print(listed(["Ann", "Smith, Bob", 'the "one", Eve']))
    Ann, "Smith, Bob", "the ""one"", Eve"
    """
    return ", ".join(map(quoted, names))


def quoted(name: str) -> str:
    """Return a name as it stands in a list: in quotes if it would look like several."""
    return f'"{name.replace(chr(34), chr(34) * 2)}"' if "," in name or "|" in name else name


def in_order(names: Iterable[str]) -> list[str]:
    """Return names in order, numbers in them by their size.

    Examples
    --------
    >>> in_order(["ward 10", "ward 9", "Ward 1"])
    ['Ward 1', 'ward 9', 'ward 10']
    """

    def key(name: str) -> tuple[list[tuple[int, int, str]], str]:
        pieces = re.split(r"([0-9]+)", name.casefold())
        return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in pieces if p], name

    return sorted(names, key=key)


def many(count: int, one: str, more: str = "") -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> many(1, "client"), many(2, "category", "categories")
    ('1 client', '2 categories')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def players_by_name(names: Sequence[str], labels: Sequence[str], option: str) -> list[int]:
    """Return the numbers of the named players; `option` is where the names come from."""
    from coalitions.errors import InvalidInputError, did_you_mean, shown

    place = {composed(label): number for number, label in enumerate(labels)}
    names = [*map(composed, names)]
    unknown = next((name for name in names if name not in place), None)
    if unknown is not None:
        several = re.split(r"\s*[;+&/]\s*|\s+(?:and|und)\s+", unknown)
        if len(several) > 1 and place.keys() >= set(several):
            hint = f"names are separated by commas: {','.join(map(quoted, several))}"
        else:
            hint = did_you_mean(unknown, labels)
        complaint = f"{option}: there is no player {shown(unknown)}; {hint}"
        raise InvalidInputError(complaint.rstrip("; "))
    return [place[name] for name in names]


def decimal(value: float) -> float:
    """Return a sum of decimals as a person would write it: 444.4, not 444.40000000000003.

    Examples
    --------
    >>> decimal(111.1 + 222.2 + 111.1)
    444.4
    """
    return float(f"{value:.15g}")


# ----------------------------------------------------------------------------------------
# LaTeX

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


# ----------------------------------------------------------------------------------------
# Tables as Markdown, LaTeX and CSV.


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = False
) -> list[str]:
    """Return the lines of a Markdown table.

    Parameters
    ----------
    head, rows
        Its cells.
    right
        Whether all columns but the first end at the right, as numbers do.

    Examples
    --------
    >>> markdown_table(["", "mean"], [["a", "0.5"]])
    ['|  | mean |', '|---|---|', '| a | 0.5 |']
    """
    rule = "| --- |" + " ---: |" * (len(head) - 1) if right else "|---" * len(head) + "|"
    first, *others = (
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (head, *rows)
    )
    return [first, rule, *others]


def latex_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a booktabs table, from cells that are LaTeX already."""
    first, *others = (" & ".join(row) + r" \\" for row in (head, *rows))
    begin = rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}"
    return [begin, r"\toprule", first, r"\midrule", *others, r"\bottomrule", r"\end{tabular}"]


def csv_table(rows: Iterable[Sequence[object]]) -> str:
    r"""Return rows as CSV, a line each.

    Examples
    --------
    >>> csv_table([["name", "score"], ["a, b", 0.5]])
    'name,score\n"a, b",0.5\n'
    """
    import csv  # not at every start of the command line

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
