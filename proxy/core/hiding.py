"""What an answer holds only because the proxy asked for logprobs by itself is taken out again.

Law: the client gets the answer as if nobody had asked: slots back to "not asked" as this server writes it, every other
byte as it was.
"""

import re
from collections.abc import Callable
from typing import Final

from proxy.core.edits import Edit
from proxy.core.format import Format
from proxy.core.places import objects_at
from proxy.core.scan import Obj, Span

_COMMA_AFTER: Final = re.compile(rb"[ \t\n\r]*+,[ \t\n\r]*+")
_WHITE: Final = b" \t\n\r"


def hider(fmt: Format, *, absent: bool, own_top: bool = False) -> Callable[[bytes, object], list[Edit]]:
    """The function that gives the edits for one payload and its exactly read root. `absent`: the server leaves out what
    the format says others write as null. `own_top`: the number of alternatives is the client's, so its echo stays."""
    rows = fmt.hidden if own_top else fmt.hidden + fmt.echoes

    def hide(text: bytes, root: object) -> list[Edit]:
        edits = []
        going: dict[int, list[Span]] = {}
        for top in root if isinstance(root, list) else [root]:
            for path, written in rows:
                for owner, _ in objects_at(top, path[:-1]):
                    span = owner.spans.get(path[-1]) if isinstance(owner, Obj) else None
                    if span is None:
                        continue
                    if written and not (absent and written == b"null"):
                        edits.append(Edit(span.start, span.end, written))
                    else:
                        going.setdefault(id(owner), []).append(span)
        return edits + [edit for spans in going.values() for edit in _removals(text, sorted(spans))]

    return hide


def _removals(text: bytes, spans: list[Span]) -> list[Edit]:
    """The edits that take members of one object out, neighbours together, each run with one comma."""
    edits = []
    while spans:
        first = last = spans.pop(0)
        while spans and text[last.end : spans[0].key_start].strip(_WHITE) == b",":
            last = spans.pop(0)
        before = len(text[: first.key_start].rstrip(_WHITE))
        if text[before - 1 : before] == b",":
            edits.append(Edit(before - 1, last.end, b""))
        elif match := _COMMA_AFTER.match(text, last.end):
            edits.append(Edit(first.key_start, match.end(), b""))
        else:
            edits.append(Edit(first.key_start, last.end, b""))
    return edits
