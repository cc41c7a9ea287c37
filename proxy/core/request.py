"""The way in: what a request wants, and whether its logprob parameters are ones the upstream takes.

Law: only the logprob parameters are judged. What cannot be judged (no JSON object, nested too deep, a byte order
mark) goes upstream as it came; the upstream has its own words for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import orjson

from proxy.core.edits import Edit
from proxy.core.format import TOP, Format, Kind, Path, Rule
from proxy.core.problem import REFUSALS, Problem
from proxy.core.scan import ALL, Obj, ScanError, scan


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
    absent: str = "null"
    """How it writes that no logprobs were asked for: `null`, or `absent`."""
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
    echo: bool = False
    prompt_chars: int | None = None
    """Length of a prompt given as one string, in characters; None where it is unknown."""
    edits: tuple[Edit, ...] = ()
    """To be made on the request before it is forwarded: it was coerced."""


UNJUDGED = Ask(judged=False)

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
) -> Problem | Ask:
    """Judge one request body: a Problem to answer with, or the Ask to go on with. Never raises on any body.

    `variables` are the route's own (`{model}`). `validation`: `strict`; `coerce`, which mends the legacy spelling and
    refuses the rest; or `off`, which refuses nothing.
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
    edits: tuple[Edit, ...] = ()
    if validation == "coerce":
        edits = _coerced(body, request, fmt, dict(rules))
    top = None
    for name, rule in rules:
        value = _at(request, rule.param)
        if validation != "off" and value is not None:
            if problem := _check(request, rule, name, value, profile):
                return replace(problem, status=REFUSALS.get(profile.envelope or fmt.envelope, problem.status))
        if Kind.INTEGER in rule.kinds and type(value) is int:
            top = value
    prompt = _at(request, fmt.prompt) if fmt.prompt else None
    model, stream = request.get("model"), request.get("stream")
    return Ask(
        asked=any(on(_at(request, path)) for path, on in fmt.asked),
        stream=stream if type(stream) is bool else None,
        model=model if type(model) is str else (variables or {}).get("model"),
        top=top,
        echo=bool(fmt.echo) and _at(request, fmt.echo) is True,
        prompt_chars=len(prompt) if type(prompt) is str else None,
        edits=edits,
    )


def _coerced(
    body: bytes, request: dict[str, object], fmt: Format, rules: Mapping[str, Rule]
) -> tuple[Edit, ...]:
    """The edits that spell a legacy number as switch and number; `request` is changed alike, and judged afterwards.

    Nothing is mended where the upstream takes the number as it is, or where both are given."""
    if fmt.legacy is None:
        return ()
    (switch,), (number,) = fmt.legacy
    value = request.get(switch)
    if type(value) is not int or request.get(number) is not None or Kind.INTEGER in rules[switch].kinds:
        return ()
    there = scan(body, ALL)
    if not isinstance(there, Obj):
        return ()
    span = there.spans[switch]
    edits = [Edit(span.start, span.end, b"true")]
    if number in there:
        old = there.spans[number]
        edits.append(Edit(old.start, old.end, orjson.dumps(value)))
    else:
        colon = body[span.key_end : span.start]
        comma = b", " if colon.endswith(b" ") else b","
        edits.append(Edit(span.end, span.end, b'%b"%b"%b%d' % (comma, number.encode(), colon, value)))
    request[switch], request[number] = True, value
    return tuple(edits)


def _at(value: object, path: Path) -> object:
    for name in path:
        if type(value) is not dict:
            return None
        value = value.get(name)
    return value


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
        switch = _at(request, rule.needs)
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


def switch_on(body: bytes, fmt: Format, profile: Profile, top: int) -> list[Edit]:
    """The edits that make a request ask for logprobs with `top` alternatives; every other byte stays.

    Members that are there get the value, missing ones come first. Raises ScanError where the body is no JSON object.
    """
    request = scan(body, ALL)
    if not isinstance(request, Obj):
        raise ScanError("the request is no JSON object")
    wanted: dict[str, object] = {}
    for path, default in fmt.switch.items():
        value = profile.switch.get((fmt.name, ".".join(path)), default)
        if value is None:
            continue
        level = wanted
        for name in path[:-1]:
            level = cast("dict[str, object]", level.setdefault(name, {}))
        level[path[-1]] = top if value is TOP else value
    edits: list[Edit] = []
    _set(body, body.index(b"{") + 1, request, wanted, edits)
    return edits


def _set(body: bytes, inside: int, there: Obj, wanted: dict[str, object], edits: list[Edit]) -> None:
    """Edits that give an object, whose inside begins at `inside`, the members wanted."""
    missing = []
    for name, value in wanted.items():
        if name not in there:
            missing.append(orjson.dumps(name) + b":" + orjson.dumps(value))
            continue
        span, old = there.spans[name], there[name]
        if isinstance(value, dict) and isinstance(old, Obj):
            _set(body, span.start + 1, old, value, edits)
        elif isinstance(value, tuple) and isinstance(old, list):
            more = [orjson.dumps(item) for item in value if item not in old]
            if more:
                comma = b"," if old else b""
                edits.append(Edit(span.start + 1, span.start + 1, b",".join(more) + comma))
        elif old is not value and (type(old) is not type(value) or old != value):
            edits.append(Edit(span.start, span.end, orjson.dumps(value)))
    if missing:
        edits.append(Edit(inside, inside, b",".join(missing) + (b"," if there else b"")))
