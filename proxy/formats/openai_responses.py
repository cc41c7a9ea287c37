"""Responses: one object, or events in which a token may stand five times.

Law: data only. Deltas append; every later copy is a snapshot of what was counted, so it adds nothing, unless a
resumed stream holds only the copy.
"""

from proxy.core.format import TOP, Counting, Format, Kind, Place, Rule, Slot, Text, includes
from proxy.core.shapes import OBJECTS

_INCLUDE = "message.output_text.logprobs"
_KEY = ("output_index", "content_index")
_SLOTS = (Slot(("logprobs",), (OBJECTS,)),)
_TEXTS = (Text(("text",)),)

FORMAT = Format(
    name="openai-responses",
    api="responses",
    routes=("responses", "responses/{id}", "conversations/{id}/items"),
    places=(
        Place((), _SLOTS, (Text(("delta",)),), _KEY, when=("type", "response.output_text.delta")),
        Place((), _SLOTS, _TEXTS, _KEY, Counting.SNAPSHOT, when=("type", "response.output_text.done")),
        *(
            Place(path, _SLOTS, _TEXTS, key, Counting.SNAPSHOT, of=("type", "output_text"), confidence=True)
            for path, key in (
                (("part",), _KEY),
                (("item", "content", "[]"), ("output_index", 0)),
                (("response", "output", "[]", "content", "[]"), (0, 1)),
                (("output", "[]", "content", "[]"), (0, 1)),
                (("data", "[]", "content", "[]"), (0, 1)),
            )
        ),
    ),
    model=(("model",), ("response", "model")),
    id=(("id",), ("response", "id")),
    rules=(Rule(("top_logprobs",), (Kind.INTEGER,), 0, 20),),
    asked=((("include",), includes(_INCLUDE)),),
    hidden=tuple(
        ((*path, "logprobs"), b"[]")
        for path in (
            (),
            ("part",),
            ("item", "content", "[]"),
            ("response", "output", "[]", "content", "[]"),
            ("output", "[]", "content", "[]"),
        )
    ),
    echoes=((("top_logprobs",), b"0"), (("response", "top_logprobs"), b"0")),
    switch={("include",): (_INCLUDE,), ("top_logprobs",): TOP},
)
