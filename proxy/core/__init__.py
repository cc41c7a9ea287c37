"""The pure core: bytes and values in, bytes and values out.

No await, clock, socket, log or metric; only the standard library and orjson. Reading order: `format` (what a
format is), `scan` and `scan_fast` (two readers, one meaning), `shapes` (families of values), `reading` (from a
payload to edits and tokens), `framing` (from a byte stream to payloads), `rewriter` (all of it as feed and
finish), `figures` and `report` (what is known at the end), `request` and `problem` (the way in).
"""
