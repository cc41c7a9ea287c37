"""vLLM's `/inference/v1/generate`: token ids in, token ids out.

Law: data only. There is no text, so every token counts as the answer's.
"""

from proxy.core.format import TOP, Format, Kind, Place, Rule, Slot, is_number
from proxy.core.shapes import KEYED_BY_ID, OBJECTS
from proxy.core.tokens import Part

FORMAT = Format(
    name="vllm-generate",
    api="native",
    routes=("inference/v1/generate",),
    envelope="openai-int",
    places=(
        Place(
            path=("choices", "[]"),
            key=("index",),
            end=("finish_reason",),
            slots=(Slot(("logprobs", "content"), (OBJECTS,)),),
        ),
        Place(path=(), slots=(Slot(("prompt_logprobs",), (KEYED_BY_ID,), Part.PROMPT),)),
    ),
    id=(("request_id",),),
    rules=(Rule(("sampling_params", "logprobs"), (Kind.INTEGER,), -1),),
    asked=((("sampling_params", "logprobs"), is_number),),
    switch={("sampling_params", "logprobs"): TOP},
)
