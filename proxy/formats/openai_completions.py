"""Legacy completions. llama.cpp, Ollama and Fireworks answer them in chat shape, vLLM adds `prompt_logprobs`, Together
streams one `token` an event beside its choice and echoes the prompt apart.

Law: data only. `logprobs: 0` asks for the chosen token alone, so it is on.
"""

from proxy.core.arrays import PARALLEL
from proxy.core.format import TOP, Format, Kind, Place, Rule, Slot, Text, is_number
from proxy.core.shapes import KEYED_BY_ID, SAMPLED, Bare
from proxy.core.tokens import Part

FORMAT = Format(
    name="openai-completions",
    api="completions",
    routes=("completions", "fim/completions", "deployments/{model}/completions", "invocations"),
    places=(
        Place(
            path=("choices", "[]"),
            key=("index",),
            end=("finish_reason",),
            confidence=True,
            slots=(
                Slot(("logprobs", "token_logprobs"), (PARALLEL,)),
                Slot(("logprobs", "content"), (SAMPLED,)),
                Slot(("raw_output", "completion_logprobs", "content"), (SAMPLED,), Part.AGGREGATE),
                Slot(("prompt_logprobs",), (KEYED_BY_ID,), Part.PROMPT),
            ),
            texts=(Text(("text",)),),
        ),
        Place(
            path=("token",),
            key=("index",),
            when=("object", "completion.chunk"),
            slots=(Slot(("logprob",), (Bare("logprob", "probability", "text", null=True),)),),
        ),
        Place(path=("prompt", "[]"), slots=(Slot(("logprobs", "token_logprobs"), (PARALLEL,), Part.PROMPT),)),
    ),
    rules=(Rule(("logprobs",), (Kind.INTEGER,), 0, 5),),
    asked=((("logprobs",), is_number),),
    hidden=((("choices", "[]", "logprobs"), b"null"),),
    switch={("logprobs",): TOP},
    echo=("echo",),
    prompt=("prompt",),
)
