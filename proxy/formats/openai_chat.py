"""Chat completions: OpenAI and nearly every imitator.

Law: data only. DeepSeek's `reasoning_content`, vLLM's `prompt_logprobs` and the legacy arrays of Together and
Fireworks stand in the same answers, so their slots are here; the value decides.
"""

from proxy.core.format import TOP, Format, Kind, Place, Rule, Slot, Text, is_true
from proxy.core.shapes import KEYED_BY_ID, OBJECTS, PARALLEL
from proxy.core.tokens import Part

FORMAT = Format(
    name="openai-chat",
    api="chat",
    routes=("chat/completions",),
    places=(
        Place(
            path=("choices", "[]"),
            key=("index",),
            end=("finish_reason",),
            slots=(
                Slot(("logprobs", "content"), (OBJECTS,)),
                Slot(("logprobs", "refusal"), (OBJECTS,), Part.REFUSAL),
                Slot(("logprobs", "reasoning_content"), (OBJECTS,), Part.REASONING),
                Slot(("logprobs", "token_logprobs"), (PARALLEL,)),
            ),
            texts=tuple(
                Text((holder, member), part)
                for holder in ("delta", "message")
                for member, part in (
                    ("content", Part.ANSWER),
                    ("reasoning_content", Part.REASONING),
                    ("reasoning", Part.REASONING),
                    ("refusal", Part.REFUSAL),
                    ("tool_calls", Part.TOOL),
                    ("function_call", Part.TOOL),
                )
            ),
        ),
        Place(path=(), slots=(Slot(("prompt_logprobs",), (KEYED_BY_ID,), Part.PROMPT),)),
    ),
    rules=(
        Rule(("logprobs",), (Kind.BOOLEAN,)),
        Rule(("top_logprobs",), (Kind.INTEGER,), 0, 20, needs=("logprobs",)),
    ),
    asked=((("logprobs",), is_true),),
    switch={("logprobs",): True, ("top_logprobs",): TOP},
)
