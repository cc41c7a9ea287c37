"""Which format a body has, when nobody said so.

Law: a format is chosen only if it is the only one whose slots match; nothing leaves before that, and where several
match or none does, the caller is told, not guessed for.
"""

from collections.abc import Sequence
from typing import Final

from proxy.core.format import Format
from proxy.core.framing import sniff
from proxy.core.report import Report
from proxy.core.request import UNJUDGED, Ask
from proxy.core.rewriter import Rewriter

_OFTEN: Final = 1 << 16


class Detector:
    """feed and finish like a Rewriter's, with the format found on the way.

    `candidates` holds the formats still possible once `finish` has failed to find one; every byte is then given
    back as it came.
    """

    def __init__(self, formats: Sequence[Format], ask: Ask = UNJUDGED) -> None:
        self._formats = formats
        self._ask = ask
        self._waiting = b""
        self._tried = 0
        """Length of what was tried before; beyond _OFTEN it is tried again when it has doubled."""
        self.rewriter: Rewriter | None = None
        """The format's, once it is known."""
        self.candidates: list[Format] = []

    def feed(self, data: bytes) -> bytes:
        """What may leave now: nothing until the format is known."""
        if self.rewriter is not None:
            return self.rewriter.feed(data)
        self._waiting += data
        return self._settle(ended=False)

    def finish(self) -> bytes:
        """The rest. Without a format it is the body as it came, and `rewriter` stays None."""
        out = b"" if self.rewriter is not None else self._settle(ended=True)
        if self.rewriter is not None:
            return out + self.rewriter.finish()
        return self._waiting

    @property
    def report(self) -> Report:
        return self.rewriter.report if self.rewriter is not None else Report()

    def _settle(self, *, ended: bool) -> bytes:
        if not ended and len(self._waiting) < 2 * self._tried > _OFTEN:
            return b""
        self._tried = len(self._waiting)
        framing = sniff(self._waiting) or ("whole" if ended else None)
        if framing is None:
            return b""
        trials = []
        for fmt in self._formats:
            trial = Rewriter(fmt, framing, self._ask)
            trial.feed(self._waiting)
            if ended:
                trial.finish()
            trials.append((trial.report, fmt))
        matching = [(report, fmt) for report, fmt in trials if report.annotated]
        # Shapes are shared between formats; the texts beside them are not.
        speaking = [row for row in matching if any(choice.text for choice in row[0].choices)]
        fitting = speaking or matching
        most = max((report.annotated for report, _ in fitting), default=0)
        self.candidates = [fmt for report, fmt in fitting if report.annotated == most]
        if len(self.candidates) != 1:
            return b""
        self.rewriter = Rewriter(self.candidates[0], framing, self._ask)
        waiting, self._waiting = self._waiting, b""
        return self.rewriter.feed(waiting)
