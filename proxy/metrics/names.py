"""Names that others choose, as values of a label.

Law: a name becomes a value only after an upstream took it (a 2xx), so that clients cannot fill the label with
what they make up, and while there is room; then all others are `other`.
"""

from typing import Final

from proxy.metrics.table import OTHER

ROOM: Final = 100


class Names:
    """The values of one label."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._known: set[tuple[str, ...]] = set()

    def admit(self, *names: str) -> tuple[str, ...]:
        """The names, or `other` for each where there is no room for them."""
        if names not in self._known:
            if len(self._known) >= self._room:
                return (OTHER,) * len(names)
            self._known.add(names)
        return names

    def __contains__(self, names: tuple[str, ...]) -> bool:
        return names in self._known
