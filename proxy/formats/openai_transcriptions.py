"""Transcriptions, as one object or as events, and Whisper's `verbose_json`.

Law: data only. The request is multipart and passes unread, so what it asked for is not known here. The last event
repeats all tokens.
"""

from proxy.core.format import Counting, Format, Place, Slot, Text
from proxy.core.shapes import OBJECTS, Number
from proxy.core.tokens import Part

_SLOTS = (Slot(("logprobs",), (OBJECTS,)),)

FORMAT = Format(
    name="openai-transcriptions",
    api="transcriptions",
    routes=(
        "audio/transcriptions",
        "audio/translations",
        "deployments/{model}/audio/transcriptions",
        "deployments/{model}/audio/translations",
    ),
    places=(
        Place((), _SLOTS, (Text(("delta",)),), when=("type", "transcript.text.delta")),
        Place(
            (), _SLOTS, (Text(("text",)),), counting=Counting.SNAPSHOT, when=("type", "transcript.text.done")
        ),
        Place((), _SLOTS, (Text(("text",)),), when=("type", None)),
        Place(
            ("segments", "[]"),
            (Slot(("avg_logprob",), (Number("avg_logprob", "avg_probability"),), Part.AGGREGATE),),
        ),
    ),
    id=(),
)
