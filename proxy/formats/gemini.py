"""Gemini and its stream, as events or as one growing array.

Law: data only. `logProbabilitySum` is a sum, not a token's logprob, and gets nothing.
"""

from proxy.core.format import TOP, Format, Kind, Place, Rule, Slot, Text, is_true
from proxy.core.shapes import Number, Objects
from proxy.core.tokens import Part

_CANDIDATES = Objects(raw="", logprobs=(("logProbability", "probability"),), alternatives="")

FORMAT = Format(
    name="gemini",
    api="native",
    routes=("models/{model}:generateContent", "models/{model}:streamGenerateContent"),
    envelope="google",
    places=(
        Place(
            path=("candidates", "[]"),
            key=("index",),
            end=("finishReason",),
            confidence=True,
            slots=(
                Slot(("avgLogprobs",), (Number("avgLogprobs", "avgProbability"),), Part.AGGREGATE),
                Slot(
                    ("logprobsResult", "topCandidates", "[]", "candidates"), (_CANDIDATES,), Part.ALTERNATIVES
                ),
                Slot(("logprobsResult", "chosenCandidates"), (_CANDIDATES,)),
            ),
            texts=(
                Text(("content", "parts", "[]", "text")),
                Text(("content", "parts", "[]", "functionCall"), Part.TOOL),
            ),
        ),
    ),
    model=(("modelVersion",),),
    id=(("responseId",),),
    terminators=(),
    growing_array=True,
    rules=(
        Rule(("generationConfig", "responseLogprobs"), (Kind.BOOLEAN,)),
        Rule(
            ("generationConfig", "logprobs"),
            (Kind.INTEGER,),
            0,
            20,
            needs=("generationConfig", "responseLogprobs"),
        ),
    ),
    asked=((("generationConfig", "responseLogprobs"), is_true),),
    hidden=((("candidates", "[]", "logprobsResult"), b""),),
    switch={("generationConfig", "responseLogprobs"): True, ("generationConfig", "logprobs"): TOP},
)
