"""Bodies that try to fool a reader: random JSON whose strings, keys and spellings are hostile.

Every text is valid JSON as a lenient writer could spell it: any white space, any escape, duplicate members, numbers in
odd forms, and members named like slots wherever no slot is.
"""

from hypothesis import strategies as st

_NAMES = (
    "logprob",
    "logprobs",
    "top_logprobs",
    "token_logprobs",
    "content",
    "token",
    "bytes",
    "probability",
    "choices",
    "delta",
    "message",
    "index",
    "text",
    "tokens",
    "prompt_logprobs",
    "avgLogprobs",
    "logProbability",
    "metadata",
    "",
    'a"b',
    "\\",
    '"logprob":-1',
    "\u2028",
    "\U0001f600",
)
_NUMBERS = (
    "0",
    "-0",
    "-0.0",
    "-0.5",
    "-1e-05",
    "1.10",
    "-9999.0",
    "1e-4",
    "0.5",
    "-12.25E+0",
    "18446744073709551616",
)

white = st.sampled_from(("", "", "", " ", "  ", "\n", "\t", "\r\n "))
names = st.sampled_from(_NAMES)
numbers = st.sampled_from(_NUMBERS) | st.floats(-20, 0.001).map(repr)


@st.composite
def spelled(draw: st.DrawFn, text: st.SearchStrategy[str] = names) -> str:
    """A JSON string, with any of its characters written as an escape."""
    out = []
    for char in draw(text):
        plain = {'"': '\\"', "\\": "\\\\"}.get(char, char)
        if ord(char) < 0x20:
            plain = f"\\u{ord(char):04x}"
        escape = "".join(f"\\u{unit:04X}" for unit in _units(char))
        out.append(draw(st.sampled_from((plain,) * 12 + (escape,))))
    return '"' + "".join(out) + '"'


def _units(char: str) -> list[int]:
    raw = char.encode("utf-16-be")
    return [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]


strings = spelled(names | st.text(max_size=8).filter(lambda s: not any(0xD800 <= ord(c) < 0xE000 for c in s)))


def _container(brackets: str, items: list[str], gap: str) -> str:
    return brackets[0] + gap + (gap + "," + gap).join(items) + gap + brackets[1]


@st.composite
def objects(
    draw: st.DrawFn, values: st.SearchStrategy[str], keys: st.SearchStrategy[str] | None = None
) -> str:
    """An object of random members, duplicates allowed."""
    gap = draw(white)
    members = draw(st.lists(st.tuples(keys or spelled(), values), max_size=4))
    return _container("{}", [f"{key}{gap}:{gap}{value}" for key, value in members], gap)


@st.composite
def arrays(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    return _container("[]", draw(st.lists(values, max_size=3)), draw(white))


scalars = numbers | strings | st.sampled_from(("null", "true", "false"))
anything = st.recursive(scalars, lambda inner: objects(inner) | arrays(inner), max_leaves=12)


@st.composite
def with_members(draw: st.DrawFn, /, **wanted: st.SearchStrategy[str]) -> str:
    """An object with the wanted members in any order, among random others that may bear the same names."""
    gap = draw(white)
    members = [(draw(spelled(st.just(name))), draw(value | anything)) for name, value in wanted.items()]
    members += draw(st.lists(st.tuples(spelled(), anything), max_size=2))
    order = draw(st.permutations(members))
    return _container("{}", [f"{key}{gap}:{draw(white)}{value}" for key, value in order], gap)


logprob = numbers | st.just("null")
alternative = with_members(token=strings, logprob=logprob)
token = with_members(token=strings, logprob=logprob, top_logprobs=arrays(alternative))
content = arrays(token)
choice = with_members(
    index=numbers,
    delta=with_members(content=strings),
    logprobs=with_members(content=content, refusal=content),
    finish_reason=strings,
)
chat = with_members(choices=arrays(choice), model=strings, metadata=anything)
candidate = with_members(token=strings, logProbability=logprob)
gemini = with_members(
    candidates=arrays(
        with_members(
            avgLogprobs=logprob,
            logprobsResult=with_members(
                topCandidates=arrays(with_members(candidates=arrays(candidate))),
                chosenCandidates=arrays(candidate),
            ),
        )
    )
)
legacy = with_members(
    choices=arrays(
        with_members(
            text=strings,
            logprobs=with_members(
                tokens=arrays(strings),
                token_logprobs=arrays(logprob),
                top_logprobs=arrays(objects(logprob) | st.just("null")),
                text_offset=arrays(numbers),
            ),
        )
    )
)
