"""Text Generation Inference's native endpoints; `/` answers with an array.

Law: data only. Alternatives stand in lists beside the tokens; the losers of `best_of` are annotated, not counted.
"""

from proxy.core.format import TOP, Format, Kind, Place, Rule, Slot, Text, is_true
from proxy.core.shapes import Objects
from proxy.core.tokens import Part

_TOKENS = (Objects(text="text", raw="", alternatives=""),)

FORMAT = Format(
    name="tgi",
    api="native",
    routes=("generate", "generate_stream", "invocations", "/"),
    envelope="tgi",
    places=(
        Place(
            path=(),
            end=("details", "finish_reason"),
            late=True,
            slots=(
                Slot(("token",), _TOKENS),
                Slot(("top_tokens",), _TOKENS, Part.ALTERNATIVES),
                Slot(("details", "prefill"), _TOKENS, Part.PROMPT),
                Slot(("details", "tokens"), _TOKENS),
                Slot(("details", "top_tokens"), _TOKENS, Part.ALTERNATIVES),
            ),
            texts=(Text(("generated_text",)),),
        ),
        Place(
            path=("details", "best_of_sequences", "[]"),
            slots=(
                Slot(("prefill",), _TOKENS, Part.PROMPT),
                Slot(("tokens",), _TOKENS, Part.AGGREGATE),
                Slot(("top_tokens",), _TOKENS, Part.AGGREGATE),
            ),
        ),
    ),
    id=(),
    terminators=(),
    rules=(
        Rule(("parameters", "details"), (Kind.BOOLEAN,)),
        Rule(("parameters", "decoder_input_details"), (Kind.BOOLEAN,)),
        Rule(("parameters", "top_n_tokens"), (Kind.INTEGER,), 0),
    ),
    asked=((("parameters", "details"), is_true),),
    switch={("parameters", "details"): True, ("parameters", "top_n_tokens"): TOP},
)
