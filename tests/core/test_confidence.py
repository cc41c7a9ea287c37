"""The member `confidence`: asked for, told, and the logprobs that only the proxy asked for hidden again."""

import json
from math import exp

import pytest

from proxy.core.asking import without
from proxy.core.confidence import Wanted, WishError, header, parse, parse_header, tell
from proxy.core.edits import apply
from proxy.core.figures import Figures
from proxy.core.format import Format
from proxy.core.problem import Problem
from proxy.core.request import Ask, Profile, judge
from proxy.core.rewriter import Rewriter
from proxy.core.tokens import Token
from proxy.formats import BY_NAME, FORMATS
from tests.laws.harness import Capture, captures
from tests.laws.pieces import cut

OPENAI = Profile("openai")
CHAT = BY_NAME["openai-chat"]


def ask(body: bytes, fmt: Format = CHAT, profile: Profile = OPENAI, header: bytes | None = None) -> Ask:
    found = judge(body, fmt, profile, header=header)
    assert isinstance(found, Ask)
    return found


def through(fmt: Format, framing: str, wish: Ask, body: bytes, size: int | None = None) -> bytes:
    rewriter = Rewriter(fmt, framing, wish)
    size = size or len(body) or 1
    out = (
        b"".join(rewriter.feed(body[at : at + size]) for at in range(0, len(body), size)) + rewriter.finish()
    )
    assert "internal" not in rewriter.report.failures
    return out


# -- the wish


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (True, Wanted()),
        ({}, Wanted()),
        ({"threshold": 0.6, "fields": True}, Wanted(0.6, True)),
        ({"labels": None, "fields": False}, Wanted()),
        (False, None),
        (None, None),
    ],
)
def test_wishes(value: object, wanted: Wanted | None) -> None:
    assert parse(value) == wanted


@pytest.mark.parametrize(
    ("value", "param"),
    [
        (1, "confidence"),
        ("true", "confidence"),
        ([], "confidence"),
        ({"field": True}, "confidence"),
        ({"threshold": 1.5}, "confidence.threshold"),
        ({"threshold": True}, "confidence.threshold"),
        ({"fields": 1}, "confidence.fields"),
        ({"labels": ["a", "A"]}, "confidence.labels"),
        ({"labels": ["a"]}, "confidence.labels"),
    ],
)
def test_wrong_wishes_are_refused_with_their_path(value: object, param: str) -> None:
    with pytest.raises(WishError) as wrong:
        parse(value)
    assert wrong.value.param == param
    problem = judge(json.dumps({"confidence": value}).encode(), CHAT, OPENAI)
    assert isinstance(problem, Problem)
    assert (problem.status, problem.param, problem.reason) == (400, param, "confidence")


def test_headers() -> None:
    assert parse_header(b"true") == Wanted()
    assert parse_header(b'{"threshold":0.25}') == Wanted(0.25)
    with pytest.raises(WishError, match="X-Confidence"):
        parse_header(b"yes")


# -- the request


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (b'{"confidence":true}', b"{}"),
        (b'{"a":1, "confidence":{"x":[1,2]}}', b'{"a":1}'),
        (b'{"confidence":true, "a":1}', b'{"a":1}'),
        (b'{"a":1,"confidence":1,"b":2}', b'{"a":1,"b":2}'),
        (b'{"confidence":1,"confidence":2}', b"{}"),
        (b'{"confidence":1,"a":1,"confidence":2,"b":2,"con\\u0066idence":3}', b'{"a":1,"b":2}'),
        (b'{"a":{"confidence":1}}', b'{"a":{"confidence":1}}'),
        (b"{}", b"{}"),
    ],
)
def test_taking_a_member_out(body: bytes, left: bytes) -> None:
    assert apply(body, without(body, "confidence")) == left


def test_taking_a_member_out_of_many_is_no_more_work_for_each() -> None:
    """Once each kept member looked through all others: this body took minutes, and the event loop with it."""
    many = b",".join(b'"a%d":1' % number for number in range(60_000))
    body = b'{"confidence":true,' + many + b"}"
    assert apply(body, without(body, "confidence")) == b"{" + many + b"}"


def test_it_switches_logprobs_on_where_the_client_did_not() -> None:
    wish = ask(b'{"model":"m","confidence":true}')
    assert wish.forward == b'{"logprobs":true,"top_logprobs":5,"model":"m"}'
    assert wish.plain == b'{"model":"m"}'
    assert (wish.asked, wish.top) == (True, 5)


def test_the_clients_own_number_is_never_raised() -> None:
    wish = ask(b'{"logprobs":true,"top_logprobs":1,"confidence":{"labels":["a","b"]}}')
    assert wish.forward == b'{"logprobs":true,"top_logprobs":1}'
    assert wish.plain is None


def test_by_header_nothing_is_removed() -> None:
    wish = ask(b'{"logprobs":true}', header=b"true")
    assert (wish.confidence, wish.forward) == (Wanted(), None)


def test_labels_ask_for_as_many_as_the_upstream_gives() -> None:
    xai = Profile(
        "xai",
        rules={
            ("openai-chat", "top_logprobs"): CHAT.rules[1].__class__(
                ("top_logprobs",), CHAT.rules[1].kinds, 0, 8, needs=("logprobs",)
            )
        },
    )
    assert ask(b'{"confidence":{"labels":["a","b"]}}', profile=xai).top == 8
    assert ask(b'{"confidence":{"labels":["a","b"]}}').top == 20


def test_an_echo_of_the_number_is_restored_unless_it_is_the_clients() -> None:
    fmt = BY_NAME["openai-responses"]
    body = b'{"id":"r","output":[{"content":[{"type":"output_text","text":"a","logprobs":[]}]}],"top_logprobs":5}'
    wish = ask(b'{"model":"m","confidence":true}', fmt)
    assert json.loads(through(fmt, "whole", wish, body))["top_logprobs"] == 0
    own = ask(b'{"model":"m","top_logprobs":5,"confidence":true}', fmt)
    assert own.forward == b'{"include":["message.output_text.logprobs"],"model":"m","top_logprobs":5}'
    assert json.loads(through(fmt, "whole", own, body))["top_logprobs"] == 5


def test_formats_without_a_place_for_it_leave_the_request_alone() -> None:
    body = b'{"confidence":"mine"}'
    wish = ask(body, BY_NAME["vllm-generate"])
    assert (wish.forward, wish.confidence) == (None, None)


# -- the answer

BODY = (
    b'{"id":"x","choices":[{"index":0,"message":{"content":"ab"},"logprobs":{"content":['
    b'{"token":"a","logprob":-0.5},{"token":"b","logprob":-0.25}]},"finish_reason":"stop"}],"usage":{}}'
)


def test_beside_the_clients_own_logprobs() -> None:
    out = through(CHAT, "whole", ask(b'{"logprobs":true,"confidence":true}'), BODY)
    choice = json.loads(out)["choices"][0]
    assert list(choice)[-1] == "confidence"
    assert choice["confidence"]["tokens"] == 2
    assert choice["confidence"]["perplexity"] == pytest.approx(exp(0.375))
    assert choice["logprobs"]["content"][0]["probability"] == exp(-0.5)
    assert choice["confidence"]["labels" if "labels" in choice["confidence"] else "tokens"] == 2


def test_alone_the_logprobs_are_hidden() -> None:
    out = through(CHAT, "whole", ask(b'{"confidence":true}'), BODY)
    value = json.loads(out)
    assert value["choices"][0].pop("confidence")["tokens"] == 2
    assert value["choices"][0]["logprobs"] is None
    absent = Profile("x", absent=("openai-chat",))
    out = through(CHAT, "whole", ask(b'{"confidence":true}', profile=absent), BODY)
    assert "logprobs" not in json.loads(out)["choices"][0]


def test_in_a_stream_it_stands_in_the_chunk_that_ends_the_choice() -> None:
    stream = (
        b'data: {"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.5}]}}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    for size in (1, 7, len(stream)):
        out = through(CHAT, "sse", ask(b'{"confidence":true,"stream":true}'), stream, size)
        first, last, done = [line for line in out.split(b"\n\n") if line]
        assert json.loads(first[6:])["choices"][0]["logprobs"] is None
        assert json.loads(last[6:])["choices"][0]["confidence"]["tokens"] == 1
        assert done == b"data: [DONE]"


def test_each_choice_has_its_own_and_fields_and_labels_stand_in_it() -> None:
    content = b'{"label":"spam"}'
    tokens = [
        {
            "token": t,
            "logprob": lp,
            "top_logprobs": [{"token": t, "logprob": lp}, {"token": "ham", "logprob": -2.0}],
        }
        for t, lp in ((b'{"label":"'.decode(), -0.1), ("spam", -0.2), (b'"}'.decode(), 0.0))
    ]
    body = json.dumps(
        {
            "choices": [
                {
                    "index": i,
                    "message": {"content": content.decode()},
                    "logprobs": {"content": tokens},
                    "finish_reason": "stop",
                }
                for i in (1, 0)
            ]
        }
    ).encode()
    wish = {"fields": True, "labels": {"at": "/label", "values": ["spam", "ham"]}, "threshold": 0.85}
    out = through(
        CHAT,
        "whole",
        ask(json.dumps({"logprobs": True, "top_logprobs": 2, "confidence": wish}).encode()),
        body,
    )
    for choice in json.loads(out)["choices"]:
        told = choice["confidence"]
        assert told["threshold"] == 0.85
        assert told["low_confidence_tokens"] == 1
        assert told["fields"]["/label"]["probability"] == pytest.approx(exp(-0.2))
        assert told["labels"]["labels"]["spam"]["probability"] == pytest.approx(exp(-0.2))
        assert told["labels"]["labels"]["ham"]["probability"] == pytest.approx(exp(-2.0))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"content": "hi"}, "upstream_sent_none"),
        ({"content": None, "tool_calls": [{"function": {"name": "f"}}]}, "tool_call"),
    ],
)
def test_no_tokens_have_a_reason(message: dict[str, object], reason: str) -> None:
    body = json.dumps(
        {"choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "x"}]}
    ).encode()
    told = json.loads(through(CHAT, "whole", ask(b'{"confidence":true}'), body))["choices"][0]["confidence"]
    assert (told["tokens"], told["reason"], told["perplexity"]) == (0, reason, None)


TELLING = [
    row for row in captures() if row.facts["status"] == 200 and any(p.confidence for p in row.format.places)
]


@pytest.mark.parametrize("row", TELLING, ids=lambda row: row.id)
def test_every_capture_hides_and_tells(row: Capture) -> None:
    """Nothing of the logprobs is left, `confidence` stands where a choice ends, and every other value is the upstream's."""
    wish = Ask(asked=True, confidence=Wanted(fields=True), plain=b"{}")
    out = through(row.format, row.framing or "raw", wish, row.body)
    was, now = ([_value(piece.payload) for piece in cut(body, row.framing)] for body in (row.body, out))
    assert len(was) == len(now)
    if row.body.startswith(b"\xef\xbb\xbf{"):
        assert out == row.body  # no JSON: it passes
        return
    for before, after in zip(was, now, strict=True):
        if isinstance(before, bytes):
            continue  # read all the same, but not by the standard library
        for path, written in row.format.hidden + row.format.echoes:
            for top in before if isinstance(before, list) else [before]:
                _write(top, path, written)
        assert repr(_without_told(after)) == repr(_without_told(before))


def _value(payload: bytes | None) -> object:
    try:
        return json.loads(payload or b"null")
    except ValueError:
        return payload


def _write(value: object, path: tuple[str, ...], written: bytes) -> None:
    """What the upstream would have sent had nobody asked, by the format's table."""
    if path[0] == "[]":
        for item in value if isinstance(value, list) else ():
            _write(item, path[1:], written)
    elif isinstance(value, dict) and path[0] in value:
        if len(path) > 1:
            _write(value[path[0]], path[1:], written)
        elif written:
            value[path[0]] = json.loads(written)
        else:
            del value[path[0]]


def _without_told(value: object) -> object:
    if isinstance(value, dict):
        told = value.get("confidence")
        is_told = isinstance(told, dict) and "sentinel_tokens" in told
        return {k: _without_told(v) for k, v in value.items() if not (k == "confidence" and is_told)}
    return [_without_told(item) for item in value] if isinstance(value, list) else value


def test_fields_of_a_tool_calls_arguments() -> None:
    """vLLM gives the tokens of tool calls, with the markup around the arguments."""
    pieces = [
        '<tool_call>{"name":"f","arguments":',
        '{"city":"',
        "Paris",
        '","n":',
        "3",
        "}",
        "}</tool_call>",
    ]
    content = [{"token": piece, "logprob": -0.1 * (i + 1)} for i, piece in enumerate(pieces)]
    call = {"type": "function", "function": {"name": "f", "arguments": '{"city":"Paris","n":3}'}}
    body = {
        "choices": [
            {
                "index": 0,
                "message": {"content": None, "tool_calls": [call]},
                "logprobs": {"content": content},
                "finish_reason": "tool_calls",
            }
        ]
    }
    wish = ask(b'{"logprobs":true,"confidence":{"fields":true}}')
    told = json.loads(through(CHAT, "whole", wish, json.dumps(body).encode()))["choices"][0]["confidence"]
    assert (told["tokens"], told["reason"]) == (0, "tool_call")
    assert told["fields"] == {}
    found = told["tool_calls"][0]["fields"]
    assert found["/city"]["probability"] == pytest.approx(exp(-0.3))
    assert found["/n"]["probability"] == pytest.approx(exp(-0.5))
    # The same in a stream, the arguments in pieces, two calls with equal arguments.
    events = []
    for index in (0, 1):
        for piece, part in ((pieces[:2], '{"city":"'), (pieces[2:4], 'Paris","n":'), (pieces[4:], "3}")):
            tokens = [content[pieces.index(one)] | {"logprob": -0.1 * (index + 1)} for one in piece]
            delta = {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
            events.append({"choices": [{"index": 0, "delta": delta, "logprobs": {"content": tokens}}]})
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    last = through(CHAT, "sse", wish, stream, 7).strip().split(b"\n\n")[-1]
    calls = json.loads(last[6:])["choices"][0]["confidence"]["tool_calls"]
    assert [call["fields"]["/city"]["probability"] for call in calls] == [
        pytest.approx(exp(-0.1)),
        pytest.approx(exp(-0.2)),
    ]


def test_fields_that_cannot_be_told_have_a_reason() -> None:
    token, figures = Token(b"a", -0.5), Figures()
    wish = Wanted(fields=True)
    assert tell(wish, figures, None, [token], b"b")["fields_reason"] == "not_aligned"
    assert tell(wish, figures, None, None, b"b")["fields_reason"] == "too_large"
    assert "fields_reason" not in tell(wish, figures, None, [token], b"a")


def test_the_answers_header() -> None:
    assert header([{"tokens": 1}]) == b'[{"tokens":1}]'
    assert header([{"a": "é\U0001f600\x7f"}]) == b'[{"a":"\\u00e9\\ud83d\\ude00\\u007f"}]'
    long = {"tokens": 1, "fields": {str(i): i for i in range(2000)}, "labels": {}}
    assert header([long]) == b'[{"tokens":1}]'


def test_all_formats_that_tell_can_hide() -> None:
    for fmt in FORMATS:
        if any(place.confidence for place in fmt.places):
            assert fmt.hidden, fmt.name
            assert fmt.switch, fmt.name
