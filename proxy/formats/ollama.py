"""Ollama's native chat and generate: NDJSON, or one object that has accumulated everything.

Law: data only. Ollama takes `top_logprobs` without `logprobs` in silence, so it is no fault here either.
"""

from proxy.core.format import TOP, Format, Kind, Place, Rule, Slot, Text, is_true
from proxy.core.shapes import OBJECTS
from proxy.core.tokens import Part

FORMAT = Format(
    name="ollama",
    api="native",
    routes=("api/chat", "api/generate"),
    envelope="text",
    places=(
        Place(
            path=(),
            end=("done",),
            confidence=True,
            slots=(Slot(("logprobs",), (OBJECTS,)),),
            texts=(
                Text(("message", "content")),
                Text(("response",)),
                Text(("message", "thinking"), Part.REASONING),
                Text(("thinking",), Part.REASONING),
                Text(("message", "tool_calls"), Part.TOOL),
            ),
        ),
    ),
    id=(),
    terminators=(),
    rules=(
        Rule(("logprobs",), (Kind.BOOLEAN,)),
        Rule(("top_logprobs",), (Kind.INTEGER,), 0, 20),
    ),
    asked=((("logprobs",), is_true),),
    hidden=((("logprobs",), b""),),
    switch={("logprobs",): True, ("top_logprobs",): TOP},
)
