"""SGLang's native `/generate`: tuples in `meta_info`, cumulative in a stream, a root array for a list of prompts.

Law: data only. The `*_flat` blobs hold no token positions and are left alone.
"""

from proxy.core.arrays import TUPLES
from proxy.core.format import TOP, Counting, Format, Kind, Place, Rule, Slot, Text, has_true, is_true
from proxy.core.tokens import Part

FORMAT = Format(
    name="sglang-generate",
    api="native",
    routes=("generate",),
    envelope="text",
    places=(
        Place(
            path=(),
            key=("index",),
            counting=Counting.SNAPSHOT,
            end=("meta_info", "finish_reason"),
            confidence=True,
            slots=tuple(
                Slot(("meta_info", f"{side}_{kind}_logprobs"), (TUPLES,), part)
                for side, kind, part in (
                    ("input", "token", Part.PROMPT),
                    ("output", "token", Part.ANSWER),
                    ("input", "top", Part.PROMPT),
                    ("output", "top", Part.ALTERNATIVES),
                    ("input", "token_ids", Part.PROMPT),
                    ("output", "token_ids", Part.AGGREGATE),
                )
            ),
            texts=(Text(("text",)),),
        ),
    ),
    id=(("meta_info", "id"),),
    rules=(
        Rule(("return_logprob",), (Kind.BOOLEAN, Kind.ARRAY)),
        Rule(("top_logprobs_num",), (Kind.INTEGER, Kind.ARRAY), 0),
    ),
    asked=((("return_logprob",), is_true), (("return_logprob",), has_true)),
    hidden=tuple(
        (("meta_info", f"{side}_{kind}_logprobs"), b"")
        for side in ("input", "output")
        for kind in ("token", "top", "token_ids")
    ),
    switch={("return_logprob",): True, ("top_logprobs_num",): TOP},
)
