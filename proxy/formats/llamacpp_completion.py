"""llama.cpp's native completion.

Law: data only. With `post_sampling_probs` the answer holds probabilities (`prob`, `top_probs`), which get nothing.
`/completions` without `/v1` is the same endpoint; legacy completions share that route.
"""

from proxy.core.format import TOP, Format, Kind, Place, Rule, Slot, Text, is_true
from proxy.core.shapes import OBJECTS

FORMAT = Format(
    name="llamacpp-completion",
    api="native",
    routes=("completion", "completions"),
    envelope="openai-int",
    places=(
        Place(
            path=(),
            key=("index",),
            end=("stop",),
            confidence=True,
            slots=(Slot(("completion_probabilities",), (OBJECTS,)),),
            texts=(Text(("content",)),),
        ),
    ),
    terminators=(),
    rules=(
        Rule(("n_probs",), (Kind.INTEGER,), 0),
        Rule(("post_sampling_probs",), (Kind.BOOLEAN,)),
    ),
    asked=((("n_probs",), is_true),),
    hidden=((("completion_probabilities",), b""),),
    echoes=((("generation_settings", "n_probs"), b"0"),),
    switch={("n_probs",): TOP},
)
