"""The way in: what a request wants, and whether its logprob parameters are ones the upstream takes.

Law: only the logprob parameters are judged. What cannot be judged (no JSON object, nested too deep, a byte order
mark) goes upstream as it came; the upstream has its own words for it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from proxy.core import confidence
from proxy.core.asking import coerced, switch_on, without
from proxy.core.confidence import Wanted, WishError
from proxy.core.edits import apply
from proxy.core.format import Format, Kind, Rule, member_at
from proxy.core.problem import REFUSALS, Problem


@dataclass(frozen=True, slots=True)
class Profile:
    """Limits and spellings of one upstream, laid over the rules of a format."""

    name: str
    envelope: str | None = None
    """Overrides the format's error envelope."""
    ranges: bool = True
    """Judge ranges and dependencies; without it only types."""
    zero_needs_switch: bool = True
    """0 alternatives are refused too where logprobs are off, as OpenAI does."""
    rules: Mapping[tuple[str, str], Rule] = field(default_factory=dict)
    """Rule by (format, parameter) in place of the format's own."""
    formats: tuple[str, ...] = ()
    """Its own native endpoints, first where several share a route."""
    switch: Mapping[tuple[str, str], object] = field(default_factory=dict)
    """What turns logprobs on, by (format, parameter), where it differs from the format's own; None: not needed."""
    absent: tuple[str, ...] = ()
    """Formats in which it leaves "not asked" out, where others write null."""
    least_top: int = 0
    """Fewest alternatives with which it sends logprobs at all."""
    keep_alive: float | None = None
    """Seconds for which it keeps idle connections without saying so."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request wants, as far as the answer's reader must know."""

    judged: bool = True
    asked: bool = False
    """The client wants logprobs."""
    stream: bool | None = None
    model: str | None = None
    """As requested."""
    top: int | None = None
    """Alternatives asked for."""
    own_top: bool = False
    """The client gave that number."""
    echo: bool = False
    prompt_chars: int | None = None
    """Length of a prompt given as one string, in characters; None where it is unknown."""
    forward: bytes | None = None
    """The request to forward, where it is not the one that came."""
    coerced: bool = False
    """A legacy spelling was mended in it."""
    confidence: Wanted | None = None
    """The answer shall carry the member `confidence`."""
    plain: bytes | None = None
    """The request without the logprobs that the proxy asked for by itself. The client did not ask, so it does not see
    them: they are hidden in the answer."""
    observed: bool = False
    """Nobody but the proxy wants to know."""
    absent: bool = False
    """The upstream leaves "not asked" out, where others write null."""
    refused: bool = False
    """The upstream refused the logprobs that the proxy asked for, so it was asked again without."""


UNJUDGED = Ask(judged=False)

_TOP_FOR_FIGURES: Final = 5
"""Alternatives that the proxy asks for by itself: enough for margins and a bound on entropy."""
_TOP_FOR_LABELS: Final = 20

_WORDS = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a decimal number",
    list: "an array",
    dict: "an object",
}
_KINDS = {Kind.BOOLEAN: bool, Kind.INTEGER: int, Kind.ARRAY: list}


def judge(
    body: bytes,
    fmt: Format,
    profile: Profile,
    variables: Mapping[str, str] | None = None,
    *,
    validation: str = "strict",
    header: bytes | None = None,
    observe: Callable[[str, str | None], bool] | None = None,
) -> Problem | Ask:
    """Judge one request body: a Problem to answer with, or the Ask to go on with. Never raises on any body.

    `variables` are the route's own (`{model}`). `validation`: `strict`; `coerce`, which mends the legacy spelling and
    refuses the rest; or `off`, which refuses nothing. `header`: the value of X-Confidence. `observe`: says by format and
    model whether to measure a request that asks for nothing.
    """
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError:
        return UNJUDGED
    if type(request) is not dict:
        return UNJUDGED
    rules = [
        (".".join(rule.param), profile.rules.get((fmt.name, ".".join(rule.param)), rule))
        for rule in fmt.rules
    ]
    forward = _coerced(body, request, fmt, dict(rules)) if validation == "coerce" else body
    mended = forward is not body
    top = None
    for name, rule in rules:
        value = member_at(request, rule.param)
        if validation != "off" and value is not None:
            if problem := _check(request, rule, name, value, profile):
                return replace(problem, status=REFUSALS.get(profile.envelope or fmt.envelope, problem.status))
        if Kind.INTEGER in rule.kinds and type(value) is int:
            top = value
    try:
        wanted = _wanted(request, header, fmt)
    except WishError as wrong:
        return Problem(400, str(wrong), param=wrong.param, code="invalid_value", reason="confidence")
    if confidence.MEMBER in request and _takes_confidence(fmt):
        forward = apply(forward, without(forward, confidence.MEMBER))
    asked = any(on(member_at(request, path)) for path, on in fmt.asked)
    model, stream = request.get("model"), request.get("stream")
    # A model in the path is the one that answers: Azure's deployment, whatever the body says.
    model = (variables or {}).get("model") or (model if type(model) is str else None)
    own_top, plain = top is not None, None
    observed = (
        wanted is None and not asked and bool(fmt.hidden) and observe is not None and observe(fmt.name, model)
    )
    if (wanted is not None and not asked) or observed:
        plain = forward
        most = _most(rule for _, rule in rules)
        few = profile.least_top if wanted is None else _TOP_FOR_LABELS if wanted.labels else _TOP_FOR_FIGURES
        top = min(few, most) if top is None else top
        forward = apply(forward, switch_on(forward, fmt, profile.switch, top))
    prompt = member_at(request, fmt.prompt) if fmt.prompt else None
    return Ask(
        asked=asked or wanted is not None,
        stream=stream if type(stream) is bool else None,
        model=model,
        top=top,
        own_top=own_top,
        echo=bool(fmt.echo) and member_at(request, fmt.echo) is True,
        prompt_chars=len(prompt) if type(prompt) is str else None,
        forward=forward if forward is not body else None,
        coerced=mended,
        confidence=wanted,
        plain=plain,
        observed=observed,
        absent=fmt.name in profile.absent,
    )


def _takes_confidence(fmt: Format) -> bool:
    return bool(fmt.switch) and any(place.confidence for place in fmt.places)


def _wanted(request: dict[str, object], header: bytes | None, fmt: Format) -> Wanted | None:
    """The wish in the member, else in the header. Raises WishError."""
    if not _takes_confidence(fmt):
        return None
    if confidence.MEMBER in request:
        return confidence.parse(request[confidence.MEMBER])
    return confidence.parse_header(header) if header is not None else None


def _coerced(body: bytes, request: dict[str, object], fmt: Format, rules: Mapping[str, Rule]) -> bytes:
    """The body with a legacy number spelled as switch and number; `request` is changed alike, and judged afterwards.

    Nothing is mended where the upstream takes the number as it is, or where both are given."""
    if fmt.legacy is None:
        return body
    (switch,), (number,) = fmt.legacy
    value = request.get(switch)
    if type(value) is not int or request.get(number) is not None or Kind.INTEGER in rules[switch].kinds:
        return body
    mended = apply(body, coerced(body, switch, number, value))
    request[switch], request[number] = True, value
    return mended


def _most(rules: Iterable[Rule]) -> int:
    """The most alternatives that may be asked for."""
    highest = [rule.high for rule in rules if Kind.INTEGER in rule.kinds and rule.high is not None]
    return min(highest, default=_TOP_FOR_LABELS)


def _check(request: object, rule: Rule, name: str, value: object, profile: Profile) -> Problem | None:
    """The first fault of one parameter, in OpenAI's words."""
    if type(value) not in {_KINDS[kind] for kind in rule.kinds}:
        wanted = " or ".join(kind.value for kind in rule.kinds)
        got = _WORDS[type(value)]
        return _problem(
            f"Invalid type for '{name}': expected {wanted}, but got {got} instead.",
            name,
            "invalid_type",
            "type",
            profile,
        )
    if not profile.ranges or type(value) is not int:
        return None
    if rule.needs and (value != 0 or profile.zero_needs_switch):
        switch = member_at(request, rule.needs)
        if switch is None or switch is False:
            needs = ".".join(rule.needs)
            return _problem(
                f"The '{name}' parameter is only allowed when '{needs}' is enabled.",
                name,
                None,
                "requires",
                profile,
            )
    if rule.low is not None and value < rule.low:
        return _problem(
            f"Invalid '{name}': integer below minimum value. Expected a value >= {rule.low}, "
            f"but got {value} instead.",
            name,
            "integer_below_min_value",
            "range",
            profile,
        )
    if rule.high is not None and value > rule.high:
        return _problem(
            f"Invalid value for '{name}': must be less than or equal to {rule.high}.",
            name,
            None,
            "range",
            profile,
        )
    return None


def _problem(message: str, param: str, code: str | None, reason: str, profile: Profile) -> Problem:
    hint = f" (logprob-proxy profile '{profile.name}'; --profile changes it)"
    return Problem(400, message + hint, param=param, code=code, reason=reason)
