"""Cohere v2 chat, as vLLM serves it, too: runs of text with the logprobs of their tokens.

Law: data only.
"""

from proxy.core.format import Format, Kind, Place, Rule, Slot, Text, is_true
from proxy.core.shapes import RUNS
from proxy.core.tokens import Part

FORMAT = Format(
    name="cohere-chat",
    api="chat",
    routes=("v2/chat",),
    envelope="message",
    places=(
        Place(
            path=(),
            end=("finish_reason",),
            confidence=True,
            slots=(Slot(("logprobs",), (RUNS,)),),
            texts=(
                Text(("message", "content", "[]", "text")),
                Text(("message", "tool_calls"), Part.TOOL),
                Text(("delta", "message", "content", "text")),
                Text(("delta", "message", "content", "thinking"), Part.REASONING),
                Text(("delta", "message", "tool_calls"), Part.TOOL),
            ),
        ),
        Place(path=("delta",), slots=(), end=("finish_reason",)),
    ),
    rules=(Rule(("logprobs",), (Kind.BOOLEAN,)),),
    asked=((("logprobs",), is_true),),
    hidden=((("logprobs",), b""),),
    switch={("logprobs",): True},
)
