"""The pure core: bytes and values in, bytes and values out.

No await, clock, socket, log or metric; only the standard library and orjson. Reading order:

format       what an endpoint is, as data            request      judge, Ask; `asking` has the edits on requests
scan         the exact reader of JSON                scan_fast    the same result sooner, or None
shape        families of values: `shapes`, `arrays`  places       where a payload's choices stand; `plans`
reading      from a payload to edits and tokens      insertions   the members that are written
framing      from a stream to payloads: `frames`, `events`, `growing`
rewriter     all of it, as feed and end              edits        the only writer
tally        tokens counted once, laid over the text by `alignment`
figures      and `position`: numbers of confidence   confidence   what a client is told; `fields`, `labels`, `hiding`
report       what is known at the end; `summary` for the log
calibration  how well a confidence tells right from wrong
"""
