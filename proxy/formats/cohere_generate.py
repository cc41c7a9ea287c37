"""Cohere v1 generate, where `likelihood` is a log-likelihood despite its name.

Law: data only. With `return_likelihoods: ALL` the prompt's tokens stand before the text's.
"""

from proxy.core.format import Format, Place, Slot, Text, one_of
from proxy.core.shapes import Number, Objects
from proxy.core.tokens import Part

_LIKELIHOOD = ("likelihood", "probability")

FORMAT = Format(
    name="cohere-generate",
    api="native",
    routes=("v1/generate",),
    envelope="message",
    places=(
        Place(
            path=("generations", "[]"),
            key=(0,),
            end=("finish_reason",),
            slots=(
                Slot(("likelihood",), (Number(*_LIKELIHOOD),), Part.AGGREGATE),
                Slot(("token_likelihoods",), (Objects(raw="", logprobs=(_LIKELIHOOD,), alternatives=""),)),
            ),
            texts=(Text(("text",)),),
        ),
    ),
    asked=((("return_likelihoods",), one_of("GENERATION", "ALL")),),
    switch={("return_likelihoods",): "GENERATION"},
)
