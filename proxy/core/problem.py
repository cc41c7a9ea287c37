"""What is wrong with a request or an exchange, in the words of the API that was called.

Law: a message says what is wrong, where, and what to do; it never repeats keys, query values or bodies.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault, before it is written in any API's shape."""

    status: int
    """HTTP status."""
    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    """Member of the request at fault, as a dotted path."""
    code: str | None = None
    reason: str = ""
    """Label value for metrics and for the header of the proxy's own errors; one of a closed list."""


_GOOGLE_STATUS: Final = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    503: "UNAVAILABLE",
}


def _openai(problem: Problem) -> object:
    return {
        "error": {
            "message": problem.message,
            "type": problem.type,
            "param": problem.param,
            "code": problem.code,
        }
    }


def _openai_int(problem: Problem) -> object:
    """vLLM: OpenAI's object with the HTTP status as `code`."""
    return {
        "error": {
            "message": problem.message,
            "type": "BadRequestError" if problem.status == 400 else problem.type,
            "param": problem.param,
            "code": problem.status,
        }
    }


def _flat(problem: Problem) -> object:
    """SGLang, LMDeploy, TensorRT-LLM."""
    return {
        "object": "error",
        "message": problem.message,
        "type": problem.type,
        "param": problem.param,
        "code": problem.status,
    }


def _text(problem: Problem) -> object:
    """Ollama, MLX-LM, SGLang's native route."""
    return {"error": problem.message}


def _google(problem: Problem) -> object:
    status = _GOOGLE_STATUS.get(
        problem.status, "INTERNAL" if problem.status >= 500 else "FAILED_PRECONDITION"
    )
    return {"error": {"code": problem.status, "message": problem.message, "status": status}}


def _tgi(problem: Problem) -> object:
    return {"error": problem.message, "error_type": "validation" if problem.status < 500 else "generation"}


def _message(problem: Problem) -> object:
    """Cohere."""
    return {"message": problem.message}


def _anthropic(problem: Problem) -> object:
    return {"type": "error", "error": {"type": problem.type, "message": problem.message}}


ENVELOPES: Final[Mapping[str, Callable[[Problem], object]]] = {
    "openai": _openai,
    "openai-int": _openai_int,
    "flat": _flat,
    "text": _text,
    "google": _google,
    "tgi": _tgi,
    "message": _message,
    "anthropic": _anthropic,
}
"""How each family of servers writes an error; a format names one, a profile may override."""


REFUSALS: Final[Mapping[str, int]] = {"tgi": 422}
"""Status of a refused parameter where it is not 400, by envelope."""


def render(problem: Problem, envelope: str) -> bytes:
    """The error body as JSON. Raises KeyError for an envelope that is not in ENVELOPES."""
    return orjson.dumps(ENVELOPES[envelope](problem))
