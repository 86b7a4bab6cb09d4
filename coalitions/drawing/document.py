"""HTML files that need nothing but themselves, and ask nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from coalitions.formatting import visible


def words(text: str) -> str:
    """Return a text as the content of an HTML element that shows it literally.

    Plotly's texts are written the same way: it takes a few tags for mark-up and decodes entities,
    but does not know that of quotation marks.

    Examples
    --------
    >>> words("b<i>x & y")
    'b&lt;i&gt;x &amp; y'
    """
    return html.escape(visible(text), quote=False)


def html_document(
    title: str,
    body: Sequence[str],
    *,
    data: Mapping[str, Any],
    scripts: Sequence[str],
    style: str = "",
) -> str:
    """Return a page whose scripts are allowed by their hashes, and that may fetch nothing.

    Parameters
    ----------
    title
        Plain text.
    body
        HTML; texts in it have gone through `words`.
    data
        Plain values for the scripts, which find them by JSON.parse under these ids.
    scripts
        JavaScript, run in this order below the body.
    style
        CSS.
    """
    # A browser reads every line end as \n before it compares hashes.
    sources = [each.replace("\r\n", "\n").replace("\r", "\n") for each in scripts]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy(sources)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{words(title)}</title>",
            f"<style>{style}</style></head><body>",
            *body,
            *(
                f'<script type="application/json" id="{name}">{_inside_script(values)}</script>'
                for name, values in data.items()
            ),
            *(f"<script>{source}</script>" for source in sources),
            "</body></html>",
        ]
    )


def policy(scripts: Sequence[str]) -> str:
    """Return the policy of a page: these scripts, styles, pictures made on the page, no more.

    Plotly writes styles as it draws, and passes shades and downloads through data and blob
    addresses; none of them leaves the page.
    """
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts]
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline';"
        " img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


DRAW = """"use strict";
const figure = JSON.parse(document.getElementById("figure").textContent);
Plotly.newPlot("plot", figure.data, figure.layout, { responsive: true, displaylogo: false });
"""
"""The script of a picture that can be zoomed."""


def plotly_page(title: str, figure: Any) -> str:  # noqa: ANN401 (a figure of plotly)
    """Return a page that is one figure, which can be zoomed."""
    return html_document(
        title,
        ['<div id="plot"></div>'],
        data={"figure": json.loads(figure.to_json())},
        scripts=[plotly_script(), DRAW],
        style="html, body, #plot { height: 100%; margin: 0; }",
    )


def plotly_script() -> str:
    """Return Plotly's own script."""
    return files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")


def _inside_script(values: Any) -> str:  # noqa: ANN401 (any JSON value)
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(values, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
