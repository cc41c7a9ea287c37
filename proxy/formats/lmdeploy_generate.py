"""LMDeploy's native `/generate`: SGLang's layout with tuples of two, not cumulative.

Law: data only.
"""

from proxy.core.arrays import TUPLES
from proxy.core.format import Format, Kind, Place, Rule, Slot, Text, is_true

FORMAT = Format(
    name="lmdeploy-generate",
    api="native",
    routes=("generate",),
    envelope="flat",
    places=(
        Place(
            path=(),
            key=("index",),
            end=("meta_info", "finish_reason"),
            slots=(Slot(("meta_info", "output_token_logprobs"), (TUPLES,)),),
            texts=(Text(("text",)),),
        ),
    ),
    id=(("meta_info", "id"),),
    rules=(Rule(("return_logprob",), (Kind.BOOLEAN,)),),
    asked=((("return_logprob",), is_true),),
    switch={("return_logprob",): True},
)
