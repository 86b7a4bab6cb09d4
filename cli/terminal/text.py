"""Text and numbers as a terminal shows them."""

from __future__ import annotations

from coalitions.characters import figure, fitting, visible, visible_lines

__all__ = ["figure", "fitting", "visible", "visible_lines"]
