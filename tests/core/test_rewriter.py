"""The rewriter as a whole: nothing is lost, whatever goes wrong; the laws over real bodies are in tests/laws."""

import orjson
import pytest

from proxy.core import rewriter as module
from proxy.core.request import Ask
from proxy.core.rewriter import Rewriter
from proxy.core.scan_fast import MAX_BYTES
from proxy.formats import BY_NAME

CHAT = BY_NAME["openai-chat"]
ASKED = Ask(asked=True)


def token(index: int, alternatives: int) -> dict[str, object]:
    more = [{"token": f"t{i}", "logprob": -0.5 - i, "bytes": [116]} for i in range(alternatives)]
    return {"token": f"t{index}", "logprob": -0.25, "bytes": None, "top_logprobs": more}


def answer(tokens: int, alternatives: int) -> bytes:
    content = [token(index, alternatives) for index in range(tokens)]
    text = "".join(f"t{index}" for index in range(tokens))
    choice = {
        "index": 0,
        "message": {"content": text},
        "logprobs": {"content": content},
        "finish_reason": "stop",
    }
    return orjson.dumps({"id": "x", "model": "m", "choices": [choice]})


def through(rewriter: Rewriter, data: bytes) -> bytes:
    out = rewriter.feed(data)
    while rewriter.busy:
        out += rewriter.step()
    return out + rewriter.finish()


def test_a_big_answer_is_read_in_slices_with_the_same_result() -> None:
    """2,000 tokens of 20 alternatives, beyond what one C call may read."""
    body = answer(2000, 20)
    rewriter = Rewriter(CHAT, "whole", ASKED)
    out = rewriter.feed(body) + rewriter.finish()
    report = rewriter.report
    assert report.annotated == 42_000
    assert report.choices[0].figures.tokens == 2000
    assert report.choices[0].figures.aligned
    small = answer(20, 20)
    assert through(Rewriter(CHAT, "whole", ASKED), small).count(b'"probability":') == 420
    assert out.count(b',"probability":0.7788007830714049') == 2000
    erased = out.replace(b',"probability":0.7788007830714049', b"")
    for index in range(20):
        erased = erased.replace(
            b',"probability":'
            + orjson.dumps(
                orjson.loads(out)["choices"][0]["logprobs"]["content"][0]["top_logprobs"][index][
                    "probability"
                ]
            ),
            b"",
        )
    assert erased == body


def test_a_big_event_is_read_in_steps_and_what_follows_waits_behind_it() -> None:
    big = b"data: " + answer(800, 20).replace(b'"message"', b'"delta"') + b"\n\n"
    assert len(big) > MAX_BYTES
    rewriter = Rewriter(CHAT, "sse", ASKED)
    assert rewriter.feed(big) == b""
    assert rewriter.busy
    assert rewriter.held == len(big)
    assert rewriter.feed(b": ping\n") == b""
    steps, out = 0, b""
    while rewriter.busy:
        assert out == b""
        out += rewriter.step()
        steps += 1
    assert steps > 5
    assert out.endswith(b"\n\n: ping\n")
    assert out.count(b'"probability":') == 16800
    assert rewriter.held == 0


def test_two_big_events_in_one_read() -> None:
    big = b"data: " + answer(800, 20).replace(b'"message"', b'"delta"') + b"\n\n"
    rewriter = Rewriter(CHAT, "sse", ASKED)
    out = through(rewriter, big + b": between\n" + big + b"data: [DONE]\n\n")
    assert out.count(b'"probability":') == 2 * 16800
    assert out.index(b": between") > out.index(b'"probability":')
    assert rewriter.report.ended


def test_a_fault_of_ours_costs_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(module, "fast", fail)
    body = b"data: " + answer(1, 1) + b"\n\n"
    rewriter = Rewriter(CHAT, "sse", ASKED)
    assert through(rewriter, body) == body
    assert rewriter.report.failures == {"internal": 1}
    assert rewriter.report.outcome == "unparsable"


def test_the_end_of_a_big_answer_is_read_in_steps_too() -> None:
    body = answer(2000, 20)
    rewriter = Rewriter(CHAT, "whole", ASKED)
    assert rewriter.feed(body) == b""
    assert rewriter.end() == b""
    steps, out = 0, b""
    while rewriter.busy:
        assert rewriter.held == len(body)
        out += rewriter.step()
        steps += 1
    assert steps > 50
    assert out.count(b'"probability":') == 42_000
    assert rewriter.held == 0


@pytest.mark.parametrize("size", [1, 100, 5000])
def test_a_body_over_its_limit_leaves_raw(size: int) -> None:
    body = answer(50, 5)
    rewriter = Rewriter(CHAT, "whole", ASKED, max_body=4096)
    out = b"".join(rewriter.feed(body[i : i + size]) for i in range(0, len(body), size)) + rewriter.finish()
    assert out == body
    assert rewriter.report.failures == {"body_too_large": 1}


def test_an_end_that_is_not_clean_is_no_failure_of_the_answer() -> None:
    body = answer(1, 1)[:-5]
    for clean, failures in ((True, {"invalid_json": 1}), (False, {})):
        rewriter = Rewriter(CHAT, "whole", ASKED)
        assert rewriter.feed(body) + rewriter.finish(clean=clean) == body
        assert rewriter.report.failures == failures


def test_raw_passes_everything() -> None:
    rewriter = Rewriter(CHAT, "raw", ASKED)
    assert rewriter.feed(b"abc") == b"abc"
    assert rewriter.finish() == b""


def test_facts() -> None:
    rewriter = Rewriter(CHAT, "sse", ASKED)
    through(rewriter, b'data: {"id":"i","model":"m","error":{"message":"no"}}\n\ndata: [DONE]\n\n')
    report = rewriter.report
    assert (report.id, report.model, report.in_band_error, report.ended) == ("i", "m", True, True)
