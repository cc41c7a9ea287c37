"""Captures, and the core driven over them in any cut.

Law: every body under tests/captures is a case of every law, by being there.
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from proxy.core.format import Format
from proxy.core.framing import choose
from proxy.core.report import Report
from proxy.core.request import Ask, Profile, judge
from proxy.core.rewriter import Rewriter
from proxy.formats import BY_NAME

CAPTURES = Path(__file__).parents[1] / "captures"

# Where a capture came without its request, the client is taken to have asked.
_REQUESTS = {
    "openai-chat": b'{"model":"m","messages":[],"logprobs":true,"top_logprobs":2}',
    "openai-completions": b'{"model":"m","prompt":"x","logprobs":2}',
    "openai-responses": b'{"model":"m","input":"x","include":["message.output_text.logprobs"]}',
    "sglang-generate": b'{"text":"x","return_logprob":true}',
    "lmdeploy-generate": b'{"prompt":"x","return_logprob":true}',
    "gemini": b'{"contents":[],"generationConfig":{"responseLogprobs":true}}',
    "ollama": b'{"model":"m","prompt":"x","logprobs":true}',
    "openai-transcriptions": b"--x--",
    "openai-realtime": b"",
    "llamacpp-completion": b'{"prompt":"x","n_probs":2}',
    "vllm-generate": b'{"token_ids":[1],"sampling_params":{"logprobs":1}}',
    "tgi": b'{"inputs":"x","parameters":{"details":true}}',
    "cohere-chat": b'{"model":"m","messages":[],"logprobs":true}',
    "cohere-generate": b'{"prompt":"x","return_likelihoods":"ALL"}',
}


@dataclass(frozen=True)
class Capture:
    """One recorded or written answer with what is known of it."""

    path: Path
    """Of its `.toml`."""
    facts: dict = field(hash=False)

    @property
    def id(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def format(self) -> Format:
        return BY_NAME[self.facts["format"]]

    @property
    def framing(self) -> str | None:
        return choose(self.facts["content_type"])

    @cached_property
    def body(self) -> bytes:
        (file,) = self.path.parent.glob(f"{self.path.stem}.upstream.*")
        return file.read_bytes()

    @property
    def expected_path(self) -> Path:
        return self.path.with_suffix(".expected")

    @property
    def expected(self) -> bytes:
        """The answer that leaves the proxy; without a file of its own it is the body as it came."""
        return self.expected_path.read_bytes() if self.expected_path.exists() else self.body

    @cached_property
    def request(self) -> bytes:
        file = self.path.with_suffix(".request.json")
        return file.read_bytes() if file.exists() else _REQUESTS.get(self.facts["format"], b"")

    @cached_property
    def ask(self) -> Ask:
        ask = judge(self.request, self.format, Profile("any"), validation="off")
        assert isinstance(ask, Ask)
        return ask


@lru_cache(maxsize=1)
def everything() -> tuple[Capture, ...]:
    """All of them, in order, with those of no format, which only pass through."""
    found = (Capture(path, tomllib.loads(path.read_text())) for path in sorted(CAPTURES.glob("*/*.toml")))
    return tuple(found)


@lru_cache(maxsize=1)
def captures() -> tuple[Capture, ...]:
    """All that the core reads."""
    return tuple(row for row in everything() if row.facts["format"])


def capture(id: str) -> Capture:
    """The one of that folder and name."""
    return next(row for row in captures() if row.id == id)


def drive(rewriter: Rewriter, chunks: Iterable[bytes], *, clean: bool = True) -> bytes:
    """Everything that leaves the core when it is fed these reads."""
    out = []
    for chunk in chunks:
        out.append(rewriter.feed(chunk))
        while rewriter.busy:
            out.append(rewriter.step())
    out.append(rewriter.finish(clean=clean))
    return b"".join(out)


def rewriter_of(row: Capture) -> Rewriter:
    return Rewriter(row.format, row.framing or "raw", row.ask)


def rewrite(row: Capture, chunks: Iterable[bytes] | None = None) -> tuple[bytes, Report]:
    """Output and report of a capture, whole or in these reads."""
    rewriter = rewriter_of(row)
    out = drive(rewriter, [row.body] if chunks is None else chunks)
    return out, rewriter.report


def in_reads(body: bytes, size: int) -> Sequence[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


def digest(report: Report) -> tuple[object, ...]:
    """All that a report says, comparable even where numbers are NaN."""
    return (
        report.annotated,
        dict(sorted(report.failures.items())),
        [(choice.key, repr(choice.figures), choice.text, choice.ended) for choice in report.choices],
        {part: list(values) for part, values in sorted(report.scored.items())},
        dict(sorted(report.status_counts.items())),
        (report.asked, report.id, report.model, report.in_band_error, report.ended, report.outcome),
    )
