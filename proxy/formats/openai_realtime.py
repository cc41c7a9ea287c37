"""Realtime's events of a transcribed input; generated answers carry no logprobs there.

Law: data only. It has no route, since the events travel in a WebSocket; the completed event repeats all tokens.
"""

from proxy.core.format import Counting, Format, Place, Slot, Text
from proxy.core.shapes import OBJECTS

_EVENT = "conversation.item.input_audio_transcription."
_SLOTS = (Slot(("logprobs",), (OBJECTS,)),)
_KEY = ("item_id", "content_index")

FORMAT = Format(
    name="openai-realtime",
    api="other",
    routes=(),
    places=(
        Place((), _SLOTS, (Text(("delta",)),), _KEY, when=("type", _EVENT + "delta")),
        Place(
            (), _SLOTS, (Text(("transcript",)),), _KEY, Counting.SNAPSHOT, when=("type", _EVENT + "completed")
        ),
    ),
    id=(("item_id",),),
)
