"""Names that clients and upstreams choose (models, ids), as logs and labels take them.

Law: a clean name is valid UTF-8 on one line, and not long; two names may become one, but none breaks its
reader.
"""

import re
from typing import Final

LENGTH: Final = 128

_UNCLEAN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, Unicode's line ends and lone surrogates."""


def clean(name: str) -> str:
    """The name, cut, with U+FFFD for each character that a reader may stumble on."""
    return _UNCLEAN.sub("\ufffd", name[:LENGTH])
