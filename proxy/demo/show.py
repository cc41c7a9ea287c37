"""One chat answer, streamed through the proxy by the official client, a line a token as it arrives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TextIO

import orjson

from proxy.demo.model import MODEL_NAME

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionTokenLogprob

_ALTERNATIVES = 2
_MAX_TOKENS = 48


async def stream(base_url: str, prompt: str, out: TextIO) -> bool:
    """Prints the answer; False, with the reason printed, if a token came without its probability."""
    import openai

    print(f"\n{prompt}\n", file=out)
    print(f"  {'token':<18}{'probability':<14}instead of", file=out, flush=True)
    probabilities: list[float | None] = []
    text = ""
    # An HTTP_PROXY of the user's must not be asked for a loopback address.
    transport = openai.DefaultAsyncHttpxClient(trust_env=False)
    client = openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, http_client=transport)
    async with client:
        chunks = await client.chat.completions.create(
            model=MODEL_NAME,
            messages=[{"role": "user", "content": prompt}],
            max_tokens=_MAX_TOKENS,
            temperature=0,
            logprobs=True,
            top_logprobs=_ALTERNATIVES + 1,  # the chosen token is usually one of them
            stream=True,
        )
        async for chunk in chunks:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for token in (choice.logprobs and choice.logprobs.content) or []:
                    probability = _probability(token)
                    probabilities.append(probability)
                    print(_line(token, probability), file=out, flush=True)
    print(f"\n{text.strip()}\n", file=out)
    known = [probability for probability in probabilities if probability is not None]
    if not probabilities:
        print("the answer came without logprobs", file=out)
        return False
    if len(known) < len(probabilities):
        print(
            f"{len(probabilities) - len(known)} of {len(probabilities)} tokens came without a probability",
            file=out,
        )
        return False
    print(_summary(known), file=out, flush=True)
    return True


def _line(token: ChatCompletionTokenLogprob, probability: float | None) -> str:
    others = [other for other in token.top_logprobs if other.token != token.token][:_ALTERNATIVES]
    alternatives = "".join(
        f"{_quoted(other.token):<14}{_number(_probability(other)):<10}" for other in others
    )
    return f"  {_quoted(token.token):<18}{_number(probability):<14}{alternatives}".rstrip()


def _summary(probabilities: list[float]) -> str:
    scored = [probability for probability in probabilities if probability > 0]
    mean = math.exp(math.fsum(map(math.log, scored)) / len(scored)) if scored else 0.0
    return (
        f"{len(probabilities)} tokens, geometric mean probability {mean:.4f}, least {min(probabilities):.4f}"
    )


def _probability(entry: Any) -> float | None:
    # Not in the client's types, but it keeps members that it does not know.
    value = getattr(entry, "probability", None)
    return float(value) if isinstance(value, int | float) else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _quoted(token: str) -> str:
    return orjson.dumps(token).decode()
