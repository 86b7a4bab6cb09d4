"""Characters that act on whoever shows them, instead of being seen."""

from __future__ import annotations

import functools
import re

UNSHOWN = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ud800-\udfff]"
"""Control characters, those that turn the direction of writing, line separators, half characters.

Joiners stay: Persian names and many emoji have them.
"""


@functools.cache
def unshown() -> re.Pattern[str]:
    """Return the pattern of one such character, compiled when it is needed: that takes a while."""
    return re.compile(UNSHOWN)
