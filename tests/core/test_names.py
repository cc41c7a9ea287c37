"""Clean names: one line, UTF-8, not long, whatever they were."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.names import LENGTH, clean


@given(st.text(st.characters(codec=None), max_size=300))
def test_a_clean_name_is_one_short_line_of_utf_8(name: str) -> None:
    cleaned = clean(name)
    assert len(cleaned) == min(len(name), LENGTH)
    assert len(cleaned.encode().decode().splitlines()) <= 1
    assert clean(cleaned) == cleaned


def test_ordinary_names_stay() -> None:
    for name in ("gpt-5.5-mini", "org/Model-7B:Q4_K_M", "modèle 模型 🤖", ""):
        assert clean(name) == name


def test_what_readers_stumble_on_goes() -> None:
    assert clean("a\ud800b\nc\u2028d\x00e\x9bf\x7f") == "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffd"
