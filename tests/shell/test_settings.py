"""Settings: one table, four sources, every fault at once under the name its writer used."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.profiles import PROFILES
from proxy.settings import SETTINGS, Settings, SettingsError, kinds, load, markdown
from proxy.settings.load import DEFAULT

KIND_CASES: list[tuple[kinds.Kind[Any], dict[str, object]]] = [
    (
        kinds.SIZE,
        {
            "64MiB": 64 << 20,
            "32MB": 32_000_000,
            "32mb": 32_000_000,
            "1 KiB": 1024,
            "1.5KiB": 1536,
            "12b": 12,
            "1048576": 1 << 20,
            "3GiB": 3 << 30,
        },
    ),
    (
        kinds.TIME,
        {"30s": 30.0, "500ms": 0.5, "2m": 120.0, "2min": 120.0, "1h": 3600.0, "1.5": 1.5, "7": 7.0},
    ),
    (kinds.DELAY, {"0": 0.0, "5s": 5.0}),
    (kinds.AUTO_TIME, {"auto": None, "4s": 4.0, "0": 0.0}),
    (kinds.COUNT, {"1": 1, "4096": 4096}),
    (kinds.SHARE, {"0": 0.0, "0.5": 0.5, "1": 1.0, "5e-1": 0.5}),
    (
        kinds.SWITCH,
        {"true": True, "Yes": True, "on": True, "1": True, "false": False, "no": False, "off": False},
    ),
    (
        kinds.ADDRESS,
        {
            "127.0.0.1:6520": "127.0.0.1:6520",
            "[::1]:6520": "[::1]:6520",
            ":6520": ":6520",
            "localhost:0": "localhost:0",
        },
    ),
    (kinds.ADDRESS_OR_OFF, {"off": "", "OFF": "", "": "", ":6521": ":6521"}),
    (
        kinds.URL,
        {
            "https://api.openai.com": "https://api.openai.com",
            "https://api.openai.com/v1": "https://api.openai.com/v1",
            "http://127.0.0.1:8000/v1/": "http://127.0.0.1:8000/v1",
            "HTTP://[::1]:8000": "http://[::1]:8000",
            "https://gateway.example/team/a": "https://gateway.example/team/a",
        },
    ),
]

REFUSED: list[tuple[kinds.Kind[Any], list[str]]] = [
    (kinds.SIZE, ["", "0", "-1", "12 parrots", "64M", "1e6", "nan", "9" * 400]),
    (kinds.TIME, ["", "0", "0s", "-1s", "5 fortnights", "inf", "nan", "9" * 400]),
    (kinds.DELAY, ["", "-1"]),
    (kinds.AUTO_TIME, ["", "automatic"]),
    (kinds.COUNT, ["", "0", "-1", "1.5", "\u0661", "9" * 400]),
    (kinds.SHARE, ["", "1.1", "-0.1", "nan", "half"]),
    (kinds.SWITCH, ["", "maybe"]),
    (
        kinds.ADDRESS,
        [
            "",
            "6520",
            "localhost",
            "127.0.0.1:",
            "127.0.0.1:65536",
            "::1:6520",
            "http://localhost:6520",
            "off",
            "a b:1",
            ":-1",
        ],
    ),
    (
        kinds.URL,
        [
            "",
            "localhost:8000",
            "ftp://host",
            "https:/host",
            "https://",
            "http://host:0",
            "http://host:99999",
            "http://[::1",
            "http://user:pass@host",
            "http://user@host",
            "http://host?",
            "http://host?key=1",
            "http://host#",
            "http://ho st",
            "http://host\\x",
            "http://h\u00f6st",
        ],
    ),
]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [(kind, text, value) for kind, cases in KIND_CASES for text, value in cases.items()],
)
def test_a_kind_reads_text_and_reads_back_what_it_shows(
    kind: kinds.Kind[Any], text: str, value: object
) -> None:
    assert kind.parse(text) == value
    assert kind.parse(kind.show(value)) == value


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in REFUSED for text in texts])
def test_a_kind_refuses_by_value_error_alone(kind: kinds.Kind[Any], text: str) -> None:
    with pytest.raises(ValueError, match=r"^\w") as caught:
        kind.parse(text)
    assert "\n" not in str(caught.value)


@given(st.text(), st.sampled_from([kind for kind, _ in KIND_CASES]))
def test_no_text_breaks_a_kind(text: str, kind: kinds.Kind[Any]) -> None:
    try:
        value = kind.parse(text)
    except ValueError:
        return
    assert kind.parse(kind.show(value)) == value


@given(st.integers(1, 1 << 50))
def test_every_size_is_shown_exactly(size: int) -> None:
    assert kinds.SIZE.parse(kinds.SIZE.show(size)) == size


@pytest.mark.parametrize(
    ("pasted", "base"),
    [
        ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1"),
        ("http://localhost:8000/v1/completions/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/responses", "http://localhost:8000/v1"),
    ],
)
def test_a_pasted_endpoint_is_told_the_base(pasted: str, base: str) -> None:
    with pytest.raises(SettingsError, match=f"write {base};"):
        load({"upstream": pasted}, {})


def test_defaults_need_nothing() -> None:
    loaded = load({}, {})
    assert loaded.settings == Settings()
    assert set(loaded.sources.values()) == {DEFAULT}
    assert loaded.warnings == ()


def test_every_row_explains_itself_and_its_default_can_be_written() -> None:
    assert [row.name for row in SETTINGS] == [field.name for field in fields(Settings)]
    for row in SETTINGS:
        assert row.help.endswith("."), row.name
        if row.name != "upstream":
            assert row.kind.parse(row.shown(row.default)) == row.default, row.name


def test_flag_over_variable_over_file_over_default(tmp_path: Path) -> None:
    config = tmp_path / "proxy.yaml"
    config.write_text("max_event: 1KiB\nmax_answer: 2KiB\nmax_head: 3KiB\n")
    loaded = load(
        {"max_event": "5KiB"},
        {"LOGPROB_PROXY_MAX_EVENT": "6KiB", "LOGPROB_PROXY_MAX_ANSWER": "7KiB", "OTHER": "x"},
        str(config),
    )
    settings = loaded.settings
    assert (settings.max_event, settings.max_answer, settings.max_head) == (5 << 10, 7 << 10, 3 << 10)
    assert loaded.sources["max_event"] == "--max-event"
    assert loaded.sources["max_answer"] == "LOGPROB_PROXY_MAX_ANSWER"
    assert loaded.sources["max_head"] == f"max_head in {config}, line 3"
    assert loaded.sources["max_held"] == DEFAULT


def test_the_file_can_be_named_by_variable(tmp_path: Path) -> None:
    config = tmp_path / "proxy.yaml"
    config.write_text("validation: off\n")
    assert load({}, {"LOGPROB_PROXY_CONFIG": str(config)}).settings.validation == "off"


def test_yaml_means_what_a_flag_means(tmp_path: Path) -> None:
    """YAML 1.1 would read `off` as false and `1:30` as ninety."""
    config = tmp_path / "proxy.yaml"
    config.write_text(
        "\ufeff# comment\nadmin: off\nvalidation: off\nlisten: :7000\nhonour_no_transform: yes\nidle_timeout: 90\n"
        'low_confidence_threshold: "0.25"\nupstream: http://127.0.0.1:8000/v1\nmax_held: 1MiB\n',
        encoding="utf-8",
    )
    settings = load({}, {}, str(config)).settings
    assert (settings.admin, settings.admin_address, settings.validation) == ("", None, "off")
    assert (settings.listen_address, settings.honour_no_transform) == (("", 7000), True)
    assert (settings.idle_timeout, settings.low_confidence_threshold) == (90.0, 0.25)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_sets_nothing(tmp_path: Path, text: str) -> None:
    config = tmp_path / "proxy.yaml"
    config.write_text(text)
    assert load({}, {}, str(config)).settings == Settings()


def test_all_faults_are_told_at_once_under_the_names_that_were_written(tmp_path: Path) -> None:
    config = tmp_path / "proxy.yaml"
    config.write_text("max_evnt: 1\nmax_head: [1]\nmax_held:\nmax_answer: x\nmax_answer: 2\n? [a]\n: 1\n")
    with pytest.raises(SettingsError) as caught:
        load(
            {"max_event": "12 parrots", "profile": "nobody"},
            {"LOGPROB_PROXY_LISTEN": "6520", "LOGPROB_PROXY_LISTN": ":1"},
            str(config),
        )
    assert caught.value.lines == (
        f"max_evnt in {config}, line 1: there is no such setting; did you mean max_event?",
        f"max_head in {config}, line 2: is a list or mapping; right is, for example, 64MiB, 32MB or 1048576",
        f"max_held in {config}, line 3: has no value; right is, for example, 64MiB, 32MB or 1048576",
        f"max_answer in {config}, line 5: stands twice; keep one",
        f"? in {config}, line 6: there is no such setting",
        f"max_answer in {config}, line 4: 'x' is not a size; right is, for example, 64MiB, 32MB or 1048576",
        "LOGPROB_PROXY_LISTN: there is no such setting; did you mean LOGPROB_PROXY_LISTEN?",
        (
            "LOGPROB_PROXY_LISTEN: '6520' does not end in a colon and a port from 0 to 65535;"
            " right is, for example, 127.0.0.1:6520, [::1]:6520 or :6520"
        ),
        f"--profile: 'nobody' is none of auto, {', '.join(PROFILES)}; right is, for example, auto",
        (
            "--max-event: '12 parrots' has the unknown unit 'parrots'"
            " (known: b, kb, kib, mb, mib, gb, gib); right is, for example, 64MiB, 32MB or 1048576"
        ),
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        (b"a: [", "it is not YAML at line 1"),
        (b"\xff\xfe\xff", "it is not UTF-8"),
        (b"a: \x00", "it is not YAML"),
        (b"[" * 100_000, "it is not YAML"),
        (b"a: 1\n--- \nb: 2\n", "it is not YAML at line 2"),
        (b"- a\n", "holds no mapping"),
        (b"just text", "holds no mapping"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, content: bytes | None, reason: str) -> None:
    config = tmp_path / "proxy.yaml"
    if content is not None:
        config.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load({}, {}, str(config))
    (line,) = caught.value.lines
    assert line.startswith(f"--config: {config} ")
    assert reason in line
    assert "\n" not in line


def test_a_wrong_upstream_is_never_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        load({"upstream": "https://me:canary@host"}, {"LOGPROB_PROXY_UPSTREAM": "https://host?key=canary"})
    assert len(caught.value.lines) == 2
    assert "canary" not in str(caught.value)


def test_an_unknown_variable_is_named_but_its_value_is_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        load({}, {"LOGPROB_PROXY_API_KEY": "canary"})
    assert "LOGPROB_PROXY_API_KEY" in str(caught.value)
    assert "canary" not in str(caught.value)


def test_an_empty_variable_is_one_that_is_not_set_except_where_empty_means_off() -> None:
    environ = {"LOGPROB_PROXY_UPSTREAM": "", "LOGPROB_PROXY_MAX_EVENT": "", "LOGPROB_PROXY_ADMIN": ""}
    loaded = load({}, environ)
    assert loaded.settings == Settings(admin="")
    assert loaded.sources["admin"] == "LOGPROB_PROXY_ADMIN"


def test_kubernetes_service_links_are_no_settings() -> None:
    """A Service named `logprob-proxy` puts these into every pod of its namespace, ours included."""
    links = {
        "SERVICE_HOST": "10.0.0.1",
        "SERVICE_PORT": "6520",
        "SERVICE_PORT_HTTP": "6520",
        "PORT": "tcp://10.0.0.1:6520",
        "PORT_6520_TCP": "tcp://10.0.0.1:6520",
        "PORT_6520_TCP_PROTO": "tcp",
        "PORT_6520_TCP_PORT": "6520",
        "PORT_6520_TCP_ADDR": "10.0.0.1",
        "ADMIN_SERVICE_HOST": "10.0.0.2",
        "ADMIN_PORT": "tcp://10.0.0.2:6521",
        "ADMIN_PORT_6521_TCP_ADDR": "10.0.0.2",
    }
    assert load({}, {f"LOGPROB_PROXY_{name}": text for name, text in links.items()}).settings == Settings()
    with pytest.raises(SettingsError, match="LOGPROB_PROXY_PORT: there is no such setting"):
        load({}, {"LOGPROB_PROXY_PORT": "6520"})


def test_one_address_cannot_serve_both_listeners() -> None:
    with pytest.raises(SettingsError, match=r"listen and admin are both :7000"):
        load({"listen": ":7000", "admin": ":7000"}, {})
    assert load({"listen": "127.0.0.1:0", "admin": "127.0.0.1:0"}, {}).settings.admin_address == (
        "127.0.0.1",
        0,
    )


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "http_proxy", "ALL_PROXY"])
def test_an_unused_proxy_variable_earns_one_line_without_its_value(name: str) -> None:
    loaded = load({}, {name: "http://me:canary@squid:3128", "https_proxy": "http://other"})
    (warning,) = loaded.warnings
    assert "_proxy is set but not used" in warning.lower()
    assert "canary" not in warning


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:6520", ("127.0.0.1", 6520)),
        ("[::1]:1", ("::1", 1)),
        (":2", ("", 2)),
        ("host:0", ("host", 0)),
    ],
)
def test_addresses_come_apart(listen: str, address: tuple[str, int]) -> None:
    assert Settings(listen=listen).listen_address == address


def test_the_markdown_table_has_a_row_for_each_setting() -> None:
    lines = markdown().splitlines()
    assert len(lines) == len(SETTINGS) + 2
    for row, line in zip(SETTINGS, lines[2:], strict=True):
        assert line.startswith(f"| `{row.flag}")
        assert f"`{row.env}`" in line
        assert line.replace("\\|", "").count("|") == 5
