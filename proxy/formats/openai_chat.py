"""Chat completions: OpenAI and nearly every imitator.

Law: data only. What imitators add stands in the same answers, so its slots are here, and the value decides: DeepSeek's
`reasoning_content`, vLLM's `prompt_logprobs`, Together's legacy arrays, bare numbers and echoed prompts, Fireworks'
`sampling_logprob` and `raw_output` (which repeats the tokens), LMDeploy's tuples.
"""

from proxy.core.arrays import KEYED_BY_TEXT, PARALLEL, TUPLES
from proxy.core.format import TOP, Format, Kind, Place, Rule, Slot, Text, is_true
from proxy.core.shapes import KEYED_BY_ID, SAMPLED, Bare
from proxy.core.tokens import Part

FORMAT = Format(
    name="openai-chat",
    api="chat",
    routes=(
        "chat/completions",
        "deployments/{model}/chat/completions",
        "endpoints/{model}/invocations",
        "invocations",
    ),
    places=(
        Place(
            path=("choices", "[]"),
            key=("index",),
            end=("finish_reason",),
            confidence=True,
            slots=(
                Slot(("logprobs", "content"), (SAMPLED,)),
                Slot(("logprobs", "refusal"), (SAMPLED,), Part.REFUSAL),
                Slot(("logprobs", "reasoning_content"), (SAMPLED,), Part.REASONING),
                Slot(("logprobs", "token_logprobs"), (PARALLEL,)),
                Slot(("logprobs",), (Bare("logprobs", "probability"),)),
                Slot(("top_logprobs",), (KEYED_BY_TEXT,), Part.ALTERNATIVES),
                Slot(("output_token_logprobs",), (TUPLES,), Part.AGGREGATE),
                Slot(("raw_output", "completion_logprobs", "content"), (SAMPLED,), Part.AGGREGATE),
            ),
            arguments=(
                ("delta", "tool_calls", "[]", "function", "arguments"),
                ("message", "tool_calls", "[]", "function", "arguments"),
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
        Place(path=("prompt", "[]"), slots=(Slot(("logprobs", "token_logprobs"), (PARALLEL,), Part.PROMPT),)),
    ),
    rules=(
        Rule(("logprobs",), (Kind.BOOLEAN,)),
        Rule(("top_logprobs",), (Kind.INTEGER,), 0, 20, needs=("logprobs",)),
    ),
    asked=((("logprobs",), is_true),),
    legacy=(("logprobs",), ("top_logprobs",)),
    hidden=((("choices", "[]", "logprobs"), b"null"),),
    switch={("logprobs",): True, ("top_logprobs",): TOP},
)
