"""What the proxy itself says no to, and how an upstream's fault is told: one table of problems.

Law: a text says what is wrong and what to do, and holds nothing of the request. `reason` is a closed list: it is the
value of X-Logprob-Proxy-Error.
"""

from __future__ import annotations

from typing import Final

from proxy.core.problem import Problem


def _client(status: int, reason: str, message: str) -> Problem:
    return Problem(status, message, reason=reason)


def _server(status: int, reason: str, message: str) -> Problem:
    return Problem(status, message, type="server_error", reason=reason)


MALFORMED: Final = _client(400, "malformed", "The request is not valid HTTP/1.1.")
HEAD_TOO_LARGE: Final = _client(
    431, "head_size", "The request's head is too large. --max-head sets the limit."
)
TARGET: Final = _client(
    400,
    "target",
    "The request target is refused: it must be a plain path without '//' in front, '.' or '..' segments, "
    "fragments or control characters.",
)
METHOD: Final = _client(405, "method", "This method is not forwarded.")
VERSION: Final = _client(505, "version", "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
TRANSFER_ENCODING: Final = _client(
    501, "transfer_encoding", "Only 'Transfer-Encoding: chunked' is understood, and only with HTTP/1.1."
)
EXPECTATION: Final = _client(417, "expectation", "Only 'Expect: 100-continue' is understood.")
UPGRADE: Final = _client(501, "upgrade", "WebSocket connections are not forwarded.")
BODY_TOO_LARGE: Final = _client(
    413, "body_size", "The request body is too large. --max-request-body of the proxy sets the limit."
)
BODY_TIMEOUT: Final = _client(408, "body_timeout", "The request body did not arrive in time.")
LOOP: Final = _server(
    508, "loop", "The request has passed this kind of proxy twice: the upstream leads back here."
)
OVERLOADED: Final = Problem(
    503,
    "The proxy is working on as many requests as it may. Try again shortly.",
    type="rate_limit_error",
    reason="overloaded",
)
STOPPING: Final = _server(503, "stopping", "The proxy is shutting down.")
INTERNAL: Final = _server(500, "internal", "The proxy failed. Its log has the details.")

CLOSING: Final = frozenset({408, 413, 431, 501, 505})
"""After these the client's connection is closed: what follows in it is not sure to be a request."""

UPSTREAM: Final = {
    "connect": _server(502, "connect", "No connection to the upstream."),
    "dns": _server(502, "dns", "The upstream's name cannot be resolved."),
    "tls": _server(502, "tls", "No trusted TLS connection to the upstream."),
    "timeout_connect": _server(504, "timeout_connect", "The upstream could not be reached in time."),
    "timeout_first_byte": _server(504, "timeout_first_byte", "The upstream did not begin to answer in time."),
    "timeout_idle": _server(504, "timeout_idle", "The upstream fell silent."),
    "protocol": _server(502, "protocol", "The upstream's answer is not valid HTTP/1.1."),
    "reset": _server(502, "reset", "The upstream reset the connection before it answered."),
    "cut": _server(502, "cut", "The upstream closed the connection before it answered."),
}
"""By the kind of fault, as the metrics count it."""
