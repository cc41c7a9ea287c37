"""Every way of cutting a body into reads, and what leaves the core for each of them.

Law: one body, one answer, whatever the reads.
"""

from proxy.core.format import Format
from proxy.core.report import FAILURE_REASONS
from proxy.core.request import Ask
from proxy.core.rewriter import Rewriter
from proxy.formats import BY_NAME

CHAT, GEMINI, OLLAMA = BY_NAME["openai-chat"], BY_NAME["gemini"], BY_NAME["ollama"]

ONE = b'{"choices":[{"index":0,"logprobs":{"content":[{"token":"a","logprob":-0.5}]}}]}'
ONE_OUT = ONE.replace(b"-0.5", b'-0.5,"probability":0.6065306597126334')


def ways(body: bytes) -> list[list[bytes]]:
    """Whole, byte by byte, and cut once at each place."""
    return [
        [body],
        [body[at : at + 1] for at in range(len(body))],
        *([body[:at], body[at:]] for at in range(1, len(body))),
    ]


def through(
    body: bytes, framing: str = "sse", fmt: Format = CHAT, **limits: int
) -> tuple[bytes, dict[str, int]]:
    """What leaves, the same for every way of cutting."""
    outs = set()
    failures: list[dict[str, int]] = []
    for chunks in ways(body):
        rewriter = Rewriter(fmt, framing, Ask(asked=True), **limits)
        out = b"".join(rewriter.feed(chunk) for chunk in chunks)
        outs.add(out + rewriter.finish())
        failures.append(rewriter.report.failures)
        assert set(rewriter.report.failures) <= set(FAILURE_REASONS)
    assert len(outs) == 1, outs
    return outs.pop(), failures[0]


def through_limited(
    body: bytes, framing: str, fmt: Format = CHAT, **limits: int
) -> tuple[bytes, dict[str, int]]:
    """As `through`, in reads of every size too, and nothing beyond the limit is held."""
    outs, failures = set(), []
    for size in (*range(1, 65), 100, 150, 200, 250, 300, len(body)):
        rewriter = Rewriter(fmt, framing, Ask(asked=True), **limits)
        out = b""
        for at in range(0, len(body), size):
            out += rewriter.feed(body[at : at + size])
            assert rewriter.held <= max(limits.values()) + size
        outs.add(out + rewriter.finish())
        failures.append(rewriter.report.failures)
    assert len(outs) == 1, outs
    assert all(one == failures[0] for one in failures), failures
    answer = through(body, framing, fmt, **limits)
    assert (outs.pop(), failures[0]) == answer
    return answer
