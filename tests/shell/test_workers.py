"""Several workers are one proxy: one address, one page of metrics, one end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from proxy.core.request import Profile
from proxy.metrics import names, workers
from proxy.server import listening
from proxy.server.supervisor import Supervisor
from proxy.server.worker import SIGN_INTERVAL, Orders
from proxy.settings import Settings
from tests.shell.processes import COMMAND, ROOT, Served, environment, served
from tests.shell.wire import (
    LAST,
    SSE_HEAD,
    WAIT,
    Seen,
    Upstream,
    answering,
    chunk,
    erased,
    event,
    get,
    post,
    sized,
    whole,
)

ANSWER = sized(whole())
RESPONSES = "logprob_responses_total"
TWO = ("--workers", "2", "--drain-delay", "0s")


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WAIT):
        while not await condition():
            await asyncio.sleep(0.02)


async def gone(pid: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


async def streaming(seen: Seen) -> None:
    """Begins a stream and ends it when the path says so; everything else is answered at once."""
    if b"chat" not in seen.start:
        await seen.send(sized(b"{}"))
    elif b"/endless/" in seen.start:
        await seen.send(SSE_HEAD + chunk(event()))
        await seen.gone()
    else:
        await seen.send(SSE_HEAD + chunk(event("one")))
        await asyncio.sleep(0.5)
        await seen.send(chunk(event("two")) + LAST)


# -- one page of metrics


async def test_what_is_counted_by_several_is_counted_once() -> None:
    async with Upstream(answering(ANSWER)).serve() as upstream, served(upstream.port, *TWO) as proxy:
        assert len(proxy.workers) == 2
        async with asyncio.TaskGroup() as group:
            for _ in range(60):
                group.create_task(proxy.ask(post()))

        await until(lambda: proxy.counted(60))
        found = await proxy.metrics()
        assert found["logprob_proxy_inflight_limit", frozenset()] == Settings().max_in_flight
        assert found["logprob_proxy_inflight_requests", frozenset()] == 0
        assert found["logprob_low_confidence_threshold", frozenset()] == 0.5
        info = frozenset({("model", "m"), ("response_model", "m")})
        assert found["logprob_model_info", info] == 1
        assert not any(label == "pid" for _, labels in found for label, _ in labels)


async def test_a_worker_that_dies_takes_no_total_with_it() -> None:
    async with Upstream(streaming).serve() as upstream, served(upstream.port, *TWO) as proxy:
        for _ in range(20):
            await proxy.ask(get())
        totals = [await proxy.total("logprob_proxy_requests_total")]
        for round_ in range(3):
            before = proxy.workers
            async with proxy.client() as client:
                await client.send(post(path=b"/endless/v1/chat/completions"))
                await client.head()
                assert await proxy.total("logprob_proxy_inflight_requests") == 1
                os.kill(before[round_ % 2], signal.SIGKILL)
                await until(lambda old=before[round_ % 2]: gone(old))  # type: ignore[misc]
                for _ in range(10):
                    assert (await proxy.ask(get())).status == 200
                    totals.append(await proxy.total("logprob_proxy_requests_total"))

            await until(lambda before=before: whole_but(proxy, before))  # type: ignore[misc]
            await until(lambda: limit_is(proxy, Settings().max_in_flight))
            assert await proxy.total("logprob_proxy_inflight_requests") == 0
        assert totals == sorted(totals)
        assert totals[-1] >= 50


async def limit_is(proxy: Served, wanted: int) -> bool:
    return await proxy.total("logprob_proxy_inflight_limit") == wanted


async def test_files_do_not_pile_up(tmp_path: Path) -> None:
    flags = (*TWO, "--metrics-dir", str(tmp_path))
    async with Upstream(answering(ANSWER)).serve() as upstream, served(upstream.port, *flags) as proxy:
        await proxy.ask(post())
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700

        async def first_files() -> bool:
            return len(list(folder.glob("gauge_livesum_*.db"))) == 2

        await until(first_files)
        await until(lambda: proxy.counted(1))
        before = {path.name for path in folder.iterdir()}
        old = proxy.workers
        os.kill(old[0], signal.SIGKILL)

        async def replaced() -> bool:
            return len(proxy.workers) == 2 and proxy.workers != old and await first_files()

        await until(replaced)
        await proxy.ask(post())
        assert {path.name for path in folder.iterdir()} == before
        proxy.process.terminate()
        assert await asyncio.wait_for(proxy.process.wait(), WAIT) == 0
    assert list(tmp_path.iterdir()) == []


async def test_workers_share_the_room_for_model_names() -> None:
    """Each has seen other names; together they have no more than one would have."""

    numbers = iter(range(140))

    async def named(seen: Seen) -> None:
        await seen.send(sized(whole().replace(b'"model":"m"', b'"model":"r%d"' % next(numbers))))

    async with Upstream(named).serve() as upstream, served(upstream.port, *TWO) as proxy:
        for first in range(0, 140, 20):
            async with asyncio.TaskGroup() as group:
                for number in range(first, first + 20):
                    group.create_task(proxy.ask(post(b'{"model":"n%d","logprobs":true}' % number)))

        await until(lambda: proxy.counted(140))
        found = await proxy.metrics()
        models = {dict(labels).get("model") for name, labels in found if name == RESPONSES}
        assert len(models) == names.ROOM + 1
        assert "other" in models
        assert found["logprob_model_label_overflow_total", frozenset()] == 40
        assert sum(name == "logprob_model_info" for name, _ in found) == names.ROOM + 1

        # One name with ever another model behind it: each worker alone would still have had room.
        numbers = iter(range(1000, 1100))
        async with asyncio.TaskGroup() as group:
            for _ in range(100):
                group.create_task(proxy.ask(post(b'{"model":"n0","logprobs":true}')))
        await until(lambda: proxy.counted(240))
        found = await proxy.metrics()
        assert sum(name == "logprob_model_info" for name, _ in found) == names.ROOM + 1


def test_names_in_a_file_are_known_to_all(tmp_path: Path) -> None:
    first, second = (names.Names(room=2, file=tmp_path / "names") for _ in range(2))
    assert first.admit("a") == ("a",)
    assert ("a",) in second
    assert ("b",) not in second
    assert second.admit('b"\n') == ('b"\n',)
    assert first.admit("c") == ("other",)
    assert first.admit('b"\n') == ('b"\n',)
    assert ("c",) not in first
    with (tmp_path / "names").open("ab") as file:
        file.write(b'["half')  # a writer that was killed
    for name in ("a", "d", "e"):
        assert names.Names(room=9, file=tmp_path / "names").admit(name) == (name,)


def test_names_without_a_disk_are_other(tmp_path: Path) -> None:
    lost = names.Names(file=tmp_path / "not there" / "names")
    assert lost.admit("a") == ("other",)
    assert ("a",) not in lost


def test_the_directory_is_new_and_does_not_stay(tmp_path: Path) -> None:
    left = tmp_path / "logprob-proxy-left"
    left.mkdir()
    (left / "owner").touch()
    (left / "counter_1.db").touch()
    foreign = tmp_path / "logprob-proxy-foreign"
    foreign.mkdir()
    with workers.directory(tmp_path) as first, workers.directory(tmp_path) as second:
        assert first != second
        assert first.exists()  # the second one's start leaves it alone
        assert not left.exists()
    assert list(tmp_path.iterdir()) == [foreign]


def test_a_scrape_never_sees_a_file_in_the_making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allocated: list[int] = []

    def scraped(descriptor: int, offset: int, size: int) -> None:
        allocated.append(size)
        workers.Gathered(tmp_path).expose()  # an empty file would raise
        os.truncate(descriptor, max(os.fstat(descriptor).st_size, offset + size))

    monkeypatch.setattr(os, "posix_fallocate", scraped)
    file = workers._Allocated(str(tmp_path / "counter_1.db"))
    keys = [json.dumps(["a", "a_total", {"n": str(number)}, "help"]) for number in range(2000)]
    for key in keys:
        file.write_value(key, 1.0, 0.0)
    file.close()
    assert allocated == [1 << 16, 1 << 17]
    page, _ = workers.Gathered(tmp_path).expose()
    assert page.count(b"a_total{") == 2000
    again = workers._Allocated(str(tmp_path / "counter_1.db"))
    assert again.read_value(keys[-1]) == (1.0, 0.0)
    again.close()


def test_a_directory_that_cannot_be_is_named() -> None:
    with pytest.raises(workers.DirectoryError, match=r"^/proc/none cannot be written to: "):
        workers.directory(Path("/proc/none")).__enter__()


# -- one address


def test_limits_for_all_together_are_shared_out() -> None:
    settings = Settings(workers=3, max_in_flight=2, max_connections=300, max_event=7)
    share = Supervisor(settings, Profile("openai"), Path("/t"))._share()
    assert (share.max_held, share.max_connections, share.max_in_flight) == (settings.max_held // 3, 100, 1)
    assert share.max_event == 7
    assert share.admin_address is None


def test_orders_survive_the_way() -> None:
    orders = Orders(Settings(upstream="http://u", upstream_keepalive=None), 2, (5, 7), "/t")
    line = orders.line()
    assert line.count(b"\n") == 1
    assert Orders.read(line).line() == line
    assert Orders.read(line).settings == orders.settings


async def test_a_burst_is_shared() -> None:
    """Two that listen on one socket take turns; by itself asyncio takes a whole queue before another one may."""

    async def unserved(_: object) -> NoReturn:
        raise AssertionError("nobody asks")

    sockets = await listening.bind(("127.0.0.1", 0))
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(listening.address(sockets[0])))
        both = [
            await listening.listen(
                unserved, [one.dup() for one in sockets], Settings(), envelope="openai", refused=print
            )
            for _ in range(2)
        ]
        taken = [len(one.connections.connections) for one in both]
        while sum(taken) < 100:
            await asyncio.sleep(0.01)
            taken = [len(one.connections.connections) for one in both]
        assert min(taken) >= 30, taken
        for one in both:
            one.close()
        await listening.until_closed(lambda: any(one.connections.connections for one in both))
    for sock in sockets:
        sock.close()


async def test_who_comes_before_the_workers_waits() -> None:
    """The address is open when it is announced; a worker's death does not close it."""
    async with Upstream(streaming).serve() as upstream, served(upstream.port, *TWO) as proxy:
        for pid in proxy.workers:
            os.kill(pid, signal.SIGKILL)
        assert (await proxy.ask(get())).status == 200


async def test_ready_means_that_a_worker_is_up() -> None:
    async with Upstream(streaming).serve() as upstream, served(upstream.port, *TWO) as proxy:
        assert (await proxy.page("/readyz")).status == 200
        for pid in proxy.workers:
            os.kill(pid, signal.SIGSTOP)  # the process above goes on
        assert (await proxy.page("/healthz")).status == 200
        assert (await proxy.page("/metrics")).status == 200
        for pid in proxy.workers:
            os.kill(pid, signal.SIGKILL)

        await until(proxy.unready)
        await until(proxy.ready)


async def test_a_worker_that_hangs_is_replaced() -> None:
    patience = f"from proxy.server import supervisor; supervisor._SILENCE = {SIGN_INTERVAL + 2}; "
    async with Upstream(streaming).serve() as upstream, served(upstream.port, *TWO, before=patience) as proxy:
        before = proxy.workers
        os.kill(before[0], signal.SIGSTOP)
        async with asyncio.timeout(3 * SIGN_INTERVAL):
            while not await gone(before[0]):
                await asyncio.sleep(0.1)
        await until(lambda: whole_but(proxy, before))
        assert before[1] in proxy.workers
        assert (await proxy.ask(get())).status == 200


async def whole_but(proxy: Served, before: list[int]) -> bool:
    """Both places are taken, and not as they were."""
    return len(proxy.workers) == 2 and proxy.workers != before


# -- one end


@pytest.mark.parametrize("everybody", [False, True], ids=["the process above", "all processes"])
async def test_a_signal_lets_answers_finish(everybody: bool) -> None:
    """systemd and a terminal send theirs to all processes: that is still one signal."""
    async with Upstream(streaming).serve() as upstream, served(upstream.port, *TWO) as proxy:
        async with proxy.client() as client:
            await client.send(post())
            await client.head()
            if everybody:
                os.killpg(proxy.process.pid, signal.SIGINT)
            else:
                proxy.process.terminate()

            async def refused() -> bool:
                try:
                    await proxy.ask(get())
                except ConnectionError:
                    return True
                except asyncio.IncompleteReadError:
                    pass  # closed together with the address
                return False

            await until(refused)
            page = await proxy.page("/readyz")
            assert (page.status, page.body) == (503, b"draining\n")
            assert (await proxy.page("/healthz")).status == 200
            body, clean = await client.chunks()
            assert (erased(body), clean) == (event("one") + event("two"), True)
        assert await asyncio.wait_for(proxy.process.wait(), WAIT) == 0


async def test_during_the_drain_delay_all_goes_on() -> None:
    flags = ("--workers", "2", "--drain-delay", "1s")
    async with Upstream(streaming).serve() as upstream, served(upstream.port, *flags) as proxy:
        proxy.process.terminate()

        await until(proxy.unready)
        late = await proxy.ask(get())
        assert (late.status, late.get(b"connection")) == (200, b"close")
        assert await asyncio.wait_for(proxy.process.wait(), WAIT) == 0


async def test_a_second_signal_ends_it_now() -> None:
    flags = ("--workers", "2", "--drain-delay", "60s")
    async with Upstream(streaming).serve() as upstream, served(upstream.port, *flags) as proxy:
        async with proxy.client() as client:
            await client.send(post(path=b"/endless/v1/chat/completions"))
            await client.head()
            proxy.process.terminate()

            await until(proxy.unready)
            began = time.monotonic()
            proxy.process.terminate()
            _, clean = await client.chunks()
            assert not clean
        assert await asyncio.wait_for(proxy.process.wait(), WAIT) == 0
        print(f"ended {time.monotonic() - began:.2f} s after the second signal")


async def test_signals_to_a_worker_are_one_however_many() -> None:
    async with Upstream(streaming).serve() as upstream, served(upstream.port, *TWO) as proxy:
        async with proxy.client() as client:
            await client.send(post())
            await client.head()
            for _ in range(3):
                for pid in proxy.workers:
                    os.kill(pid, signal.SIGTERM)
                await asyncio.sleep(0.05)
            body, clean = await client.chunks()
            assert (erased(body), clean) == (event("one") + event("two"), True)


async def test_one_worker_can_be_sent_home() -> None:
    async with Upstream(streaming).serve() as upstream, served(upstream.port, *TWO) as proxy:
        before = proxy.workers
        os.kill(before[0], signal.SIGTERM)
        await until(lambda: gone(before[0]))

        async def replaced() -> bool:
            return len(proxy.workers) == 2 and await proxy.ready()

        await until(replaced)
        assert before[1] in proxy.workers
        assert (await proxy.ask(get())).status == 200


async def test_workers_do_not_outlive_the_process_above() -> None:
    async with Upstream(streaming).serve() as upstream, served(upstream.port, *TWO) as proxy:
        left = proxy.workers
        proxy.process.kill()
        for pid in left:
            await until(lambda pid=pid: gone(pid))  # type: ignore[misc]


# -- where it cannot start


def test_a_worker_that_does_not_start_is_told(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nif 'PROMETHEUS_MULTIPROC_DIR' in os.environ: os._exit(7)\n"
    )
    result = subprocess.run(
        [
            *COMMAND,
            "serve",
            "--upstream",
            "http://127.0.0.1:9",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "off",
            *TWO,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}"),
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr in [f"error: worker {place} did not start (status 7)\n" for place in (1, 2)]


def test_an_address_that_is_taken_is_told() -> None:
    with subprocess.Popen([sys.executable, "-c", TAKE], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            taken = other.stdout.readline().strip()
            result = subprocess.run(
                [*COMMAND, "serve", "--upstream", "http://127.0.0.1:9", "--listen", taken, *TWO],
                capture_output=True,
                text=True,
                timeout=60,
                env=environment(),
            )
        finally:
            other.kill()
    assert result.returncode == 1
    assert result.stderr.startswith("error: cannot listen: ")


TAKE = """
import socket, time
taken = socket.create_server(("127.0.0.1", 0))
print("127.0.0.1:%d" % taken.getsockname()[1], flush=True)
time.sleep(60)
"""


def confined(*more: str) -> list[str]:
    """A root that cannot be written to, and a user whom the system does not know."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    root = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    return ["bwrap", *root, *more, "--unshare-user", "--uid", "54321", "--gid", "54321", "--die-with-parent"]


def test_nowhere_to_write_is_told_with_the_name_of_the_place() -> None:
    result = subprocess.run(
        [*confined(), *COMMAND, "serve", "--upstream", "http://127.0.0.1:9", *TWO],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(TMPDIR=""),
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "error: --workers 2 needs a directory to write to, and /tmp cannot be written to: Read-only file system; mount one"
        " there (in Kubernetes an emptyDir, in Docker a tmpfs) or name another one with --metrics-dir, such as /dev/shm\n"
    )


@pytest.mark.parametrize(("temporary", "flags"), [("/mnt", ()), ("", ("--metrics-dir", "/mnt/deeper/still"))])
async def test_one_place_to_write_is_enough(temporary: str, flags: tuple[str, ...]) -> None:
    env = environment(TMPDIR=temporary, HOME="/nonexistent")
    async with (
        Upstream(answering(ANSWER)).serve() as upstream,
        served(upstream.port, *TWO, *flags, prefix=confined("--tmpfs", "/mnt"), env=env) as proxy,
    ):
        assert (await proxy.ask(post())).status == 200

        await until(lambda: proxy.counted(1))


async def test_a_full_disk_costs_counts_and_nothing_else() -> None:
    """A write to a mapped page for which there is no room would end a worker by SIGBUS."""
    room = confined("--size", str(1 << 20), "--tmpfs", "/mnt")
    env = environment(TMPDIR="/mnt")
    async with (
        Upstream(answering(ANSWER)).serve() as upstream,
        served(upstream.port, *TWO, "--log-level", "error", prefix=room, env=env) as proxy,
    ):
        for number in range(200):
            assert (await proxy.ask(post(b'{"model":"n%d","logprobs":true}' % number))).status == 200

        async def some_counted() -> bool:
            return 10 < await proxy.total(RESPONSES) < 200

        await until(some_counted)
        assert await proxy.total("logprob_proxy_inflight_limit") == Settings().max_in_flight


def test_files_of_someone_else_are_left_alone(tmp_path: Path) -> None:
    """An application beside it may use the same library: its variable is not ours, and its files are not."""
    theirs = tmp_path / "counter_17.db"
    theirs.write_bytes(b"theirs")
    result = subprocess.run(
        [*COMMAND, "check", "--upstream", "http://u"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(PROMETHEUS_MULTIPROC_DIR=str(tmp_path)),
    )
    assert result.stderr == (
        "warning: PROMETHEUS_MULTIPROC_DIR is set but not used: --metrics-dir says where workers keep their metrics\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["counter_17.db"]


async def test_one_worker_writes_no_files(tmp_path: Path) -> None:
    env = environment(PROMETHEUS_MULTIPROC_DIR=str(tmp_path), TMPDIR=str(tmp_path))
    async with Upstream(answering(ANSWER)).serve() as upstream, served(upstream.port, env=env) as proxy:
        assert (await proxy.ask(post())).status == 200
        assert list(tmp_path.iterdir()) == []
        assert proxy.workers == []
        assert MultiProcessCollector(CollectorRegistry(), str(tmp_path)).collect() is not None
