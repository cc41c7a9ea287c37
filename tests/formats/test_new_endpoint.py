"""An endpoint that nobody has yet, added as anybody would add one.

Law: one value of Format of less than 60 lines and one row in FORMATS, and everything works with it: judging, switching
on, rewriting in any cut, counting once, detection, routing, the running proxy and its metrics. Nothing else changes.
"""

import inspect

import orjson
import pytest

from proxy import formats
from proxy.core.asking import switch_on
from proxy.core.detect import Detector
from proxy.core.edits import apply
from proxy.core.format import TOP, Counting, Format, Kind, Place, Rule, Slot, Text, is_true
from proxy.core.problem import Problem
from proxy.core.request import Ask, Profile, judge
from proxy.core.rewriter import Rewriter
from proxy.core.shapes import Number, Objects
from proxy.core.tokens import Part
from tests.laws.eraser import erase_by_comparing
from tests.laws.harness import digest, drive, in_reads
from tests.shell.wire import LAST, SSE_HEAD, Seen, chunk, post, proxied, sized


def endpoint() -> Format:
    """What its file would hold."""
    pieces = Objects(text="t", raw="", logprobs=(("lp", "probability"),), alternatives="others")
    slots = (
        Slot(("pieces",), (pieces,)),
        Slot(("mean_lp",), (Number("mean_lp", "avg_probability"),), Part.AGGREGATE),
    )
    texts = (Text(("said",)), Text(("thought",), Part.REASONING))
    return Format(
        name="lines",
        api="native",
        routes=("engines/{model}/lines",),
        envelope="text",
        places=tuple(
            Place(
                path=("outputs", "[]"),
                key=("n",),
                slots=slots,
                texts=texts,
                counting=counting,
                when=("kind", kind),
                end=("why",),
            )
            for kind, counting in (
                ("more", Counting.APPEND),
                ("all", Counting.SNAPSHOT),
                (None, Counting.APPEND),
            )
        ),
        model=(("engine",),),
        id=(("run",),),
        error=("fault",),
        terminators=(b"[END]",),
        rules=(
            Rule(("tell", "pieces"), (Kind.BOOLEAN,)),
            Rule(("tell", "others"), (Kind.INTEGER,), 0, 9, needs=("tell", "pieces")),
        ),
        asked=((("tell", "pieces"), is_true),),
        switch={("tell", "pieces"): True, ("tell", "others"): TOP},
    )


NEW = endpoint()
PATH = b"/v9/engines/e1/lines?x=1"
ASK = b'{"input":"x","tell":{"pieces":true,"others":1}}'
WHOLE = (
    b'{"engine":"e1-2030","run":"r","outputs":[{"n":0,"said":"ab","pieces":[{"t":"a","lp":-0.5,"others":'
    b'[{"t":"a","lp":-0.5},{"t":"lp","lp":-9999}]},{"t":"b","lp":null}],"mean_lp":-0.5,"why":"full"}],'
    b'"pieces":[{"lp":-9.5}],"input":{"lp":-9.5}}'
)
WHOLE_OUT = (
    b'{"engine":"e1-2030","run":"r","outputs":[{"n":0,"said":"ab","pieces":[{"t":"a","lp":-0.5,'
    b'"probability":0.6065306597126334,"others":[{"t":"a","lp":-0.5,"probability":0.6065306597126334},{"t":"lp",'
    b'"lp":-9999,"probability":0.0}]},{"t":"b","lp":null,"probability":null}],"mean_lp":-0.5,'
    b'"avg_probability":0.6065306597126334,"why":"full"}],"pieces":[{"lp":-9.5}],"input":{"lp":-9.5}}'
)
EVENTS = (
    b'data: {"engine":"e1-2030","run":"r","kind":"more","outputs":[{"n":1,"thought":"hm","pieces":[{"t":"hm","lp":0}]}]}\n\n',
    b': ping\n\ndata: {"kind":"more","outputs":[{"n":1,"said":"a","pieces":[{"t":"a","lp":-0.5}]},{"n":0,"said":"c","pieces":[{"t":"c","lp":-0.25}]}]}\r\n\r\n',
    b'data: {"kind":"other","outputs":[{"n":1,"said":"x","pieces":[{"t":"x","lp":-9.5}]}]}\n\n',
    b'data: {"kind":"all","outputs":[{"n":1,"pieces":[{"t":"hm","lp":0},{"t":"a","lp":-0.5},{"t":"b","lp":-0.75}],"said":"ab","why":"full"}]}\n\n',
    b"data: [END]\n\n",
)
STREAM = b"".join(EVENTS)
STREAM_OUT = (
    STREAM.replace(b'"lp":0}', b'"lp":0,"probability":1.0}')
    .replace(b'"lp":-0.5}', b'"lp":-0.5,"probability":0.6065306597126334}')
    .replace(b'"lp":-0.25}', b'"lp":-0.25,"probability":0.7788007830714049}')
    .replace(b'"lp":-0.75}', b'"lp":-0.75,"probability":0.4723665527410147}')
)


@pytest.fixture(autouse=True)
def one_row_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row."""
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, NEW))
    monkeypatch.setattr(formats, "BY_NAME", {**formats.BY_NAME, NEW.name: NEW})


def test_it_is_a_short_file():
    assert len(inspect.getsource(endpoint).splitlines()) < 60


def test_its_route_is_found():
    found = formats.match("/v9/engines/e1/lines")
    assert found == (NEW, {"model": "e1"})
    assert formats.match("/v9/engines/e1/lines/") == found
    assert formats.match("/v9/engines/lines") is None
    known = formats.match("/v1/chat/completions")
    assert known
    assert known[0].name == "openai-chat"


def _judged(body: bytes, profile: Profile | None = None) -> Problem | Ask:
    return judge(body, NEW, profile or Profile("openai"), {"model": "e1"})


def test_its_requests_are_judged():
    ask = _judged(ASK)
    assert isinstance(ask, Ask)
    assert (ask.asked, ask.top, ask.model) == (True, 1, "e1")
    ask = _judged(b'{"tell":{"pieces":false}}')
    assert isinstance(ask, Ask)
    assert not ask.asked


@pytest.mark.parametrize(
    ("body", "param", "reason"),
    [
        (b'{"tell":{"pieces":"yes"}}', "tell.pieces", "type"),
        (b'{"tell":{"pieces":true,"others":10}}', "tell.others", "range"),
        (b'{"tell":{"pieces":true,"others":-1}}', "tell.others", "range"),
        (b'{"tell":{"others":1}}', "tell.others", "requires"),
    ],
)
def test_what_it_refuses(body: bytes, param: str, reason: str):
    problem = _judged(body)
    assert isinstance(problem, Problem)
    assert (problem.param, problem.reason) == (param, reason)


def test_a_profile_may_know_other_limits():
    wide = Profile("wide", rules={("lines", "tell.others"): Rule(("tell", "others"), (Kind.INTEGER,), 0, 99)})
    assert isinstance(_judged(b'{"tell":{"pieces":true,"others":98}}', wide), Ask)


def test_it_is_switched_on():
    body = b'{"input":"x", "tell":{"pieces":false, "more":[1]}}'
    switched = apply(body, switch_on(body, NEW, {}, 3))
    assert orjson.loads(switched) == {"input": "x", "tell": {"pieces": True, "others": 3, "more": [1]}}
    ask = _judged(switched)
    assert isinstance(ask, Ask)
    assert ask.asked


@pytest.mark.parametrize(
    ("framing", "body", "expected"), [("whole", WHOLE, WHOLE_OUT), ("sse", STREAM, STREAM_OUT)]
)
def test_the_laws(framing: str, body: bytes, expected: bytes):
    """Erase law, any cut, idempotence; what is counted is the same in all of them."""
    ask = _judged(ASK)
    assert isinstance(ask, Ask)
    rewriter = Rewriter(NEW, framing, ask)
    assert drive(rewriter, [body]) == expected
    assert erase_by_comparing(body, expected) == body
    wanted = digest(rewriter.report)
    for at in range(len(body) + 1):
        cut = Rewriter(NEW, framing, ask)
        assert drive(cut, [body[:at], body[at:]]) == expected
        assert digest(cut.report) == wanted
    for size in (1, 2, 3, 7):
        assert drive(Rewriter(NEW, framing, ask), in_reads(body, size)) == expected
    again = Rewriter(NEW, framing, ask)
    assert drive(again, [expected]) == expected
    assert again.report.annotated == 0


def test_every_event_leaves_at_once():
    rewriter = Rewriter(NEW, "sse")
    for event in EVENTS:
        assert erase_by_comparing(event, rewriter.feed(event)) == event
        assert rewriter.held == 0


def test_a_token_is_counted_once():
    rewriter = Rewriter(NEW, "sse")
    drive(rewriter, [STREAM])
    report = rewriter.report
    by_key = {choice.key: choice for choice in report.choices}
    assert {key: choice.figures.tokens for key, choice in by_key.items()} == {(0, 0): 1, (0, 1): 2}
    assert by_key[0, 1].ended
    assert len(report.scored["reasoning"]) == 1
    assert (report.id, report.model, report.ended, report.in_band_error) == ("r", "e1-2030", True, False)
    assert report.failures == {}
    whole = Rewriter(NEW, "whole")
    drive(whole, [WHOLE])
    (choice,) = whole.report.choices
    assert (choice.figures.tokens, choice.figures.unscored_tokens, choice.figures.aligned) == (1, 1, True)


def test_its_error_inside_a_stream_is_seen():
    rewriter = Rewriter(NEW, "sse")
    drive(rewriter, [b'data: {"fault":"full"}\n\n'])
    assert rewriter.report.in_band_error


@pytest.mark.parametrize(
    ("body", "expected"), [(WHOLE, WHOLE_OUT), (STREAM, STREAM_OUT)], ids=["whole", "sse"]
)
def test_it_is_detected(body: bytes, expected: bytes):
    detector = Detector(formats.FORMATS)
    out = b"".join([detector.feed(body[at : at + 50]) for at in range(0, len(body), 50)]) + detector.finish()
    assert detector.rewriter is not None
    assert detector.rewriter._format is NEW
    assert out == expected


async def test_it_goes_through_the_running_proxy():
    async def behave(seen: Seen) -> None:
        if b'"stream":true' in seen.body:
            await seen.send(SSE_HEAD + b"".join(chunk(event) for event in EVENTS) + LAST)
        elif b'"pieces":true' in seen.body:
            await seen.send(sized(WHOLE))
        else:
            await seen.send(sized(b'{"outputs":[{"n":0,"said":"ab"}]}'))

    async with proxied(behave) as proxy:
        assert (await proxy.ask(post(ASK, PATH))).body == WHOLE_OUT
        streamed = ASK[:-1] + b',"stream":true}'
        assert (await proxy.ask(post(streamed, PATH))).body == STREAM_OUT
        assert (await proxy.ask(post(b'{"input":"x"}', PATH))).body == b'{"outputs":[{"n":0,"said":"ab"}]}'
        refused = await proxy.ask(post(b'{"tell":{"others":1}}', PATH))
        assert refused.status == 400
        assert isinstance(orjson.loads(refused.body)["error"], str)
        assert len(proxy.upstream.seen) == 3
        await proxy.outcome(3)
        assert [row.outcome for row in proxy.outcomes] == ["scored", "scored", "not_asked", "passthrough"]
        assert {(row.format, row.api, row.model) for row in proxy.outcomes} == {("lines", "native", "e1")}
        exposed = proxy.counters.expose()[0].decode()
    where = 'api="native",model="e1"'
    assert f'logprob_tokens_total{{{where},part="answer",status="scored"}} 4.0' in exposed
    assert f'logprob_tokens_total{{{where},part="reasoning",status="scored"}} 1.0' in exposed
    assert f'logprob_responses_total{{{where},outcome="scored",stream="true"}} 1.0' in exposed
    assert 'logprob_model_info{model="e1",response_model="e1-2030"} 1.0' in exposed
    assert 'logprob_validation_errors_total{param="other",reason="requires"} 1.0' in exposed
