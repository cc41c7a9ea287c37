"""The examples work: they are what people copy."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy import settings

ROOT = Path(__file__).parents[2]
COMMAND = Path(sysconfig.get_path("scripts")) / "logprob-proxy"
CONFIGS = sorted((ROOT / "config").glob("*.yaml"))
YAML_FILES = CONFIGS + sorted((ROOT / "deploy").rglob("*.yaml")) + sorted((ROOT / "deploy").rglob("*.yml"))
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name}\s+(.*)$", DOCKERFILE, re.MULTILINE)


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


@pytest.mark.parametrize("file", YAML_FILES, ids=relative)
def test_yaml_is_yaml(file: Path) -> None:
    assert list(yaml.safe_load_all(file.read_text()))


@pytest.mark.parametrize("file", CONFIGS, ids=relative)
def test_check_takes_every_example(file: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LOGPROB_PROXY_")}
    result = subprocess.run(
        [COMMAND, "check", "--config", file], capture_output=True, text=True, timeout=60, env=environment
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert str(yaml.safe_load(file.read_text())["upstream"]) in result.stdout


def sidecar() -> dict[str, Any]:
    (container,) = load("deploy/kubernetes/sidecar.yaml")["spec"]["initContainers"]
    assert isinstance(container, dict)
    return container


def environments() -> Iterator[tuple[str, dict[str, str]]]:
    yield "sidecar", {entry["name"]: entry["value"] for entry in sidecar()["env"]}
    compose = load("deploy/compose.yaml")["services"]["logprob-proxy"]["environment"]
    # As compose does: ${NAME:-default}, ${NAME:?what to say}.
    substituted = {
        key: re.sub(r"\$\{\w+:-(.*?)\}", r"\1", re.sub(r"\$\{\w+:\?.*\}", "http://upstream/v1", value))
        for key, value in compose.items()
    }
    yield "compose", substituted
    variables = re.findall(r"(LOGPROB_PROXY_\w+)=(\S+)", " ".join(instructions("ENV")))
    yield "Dockerfile", dict(variables)


@pytest.mark.parametrize("place", ["sidecar", "compose", "Dockerfile"])
def test_variables_are_settings_with_right_values(place: str) -> None:
    environment = dict(environments())[place]
    assert environment
    loaded = settings.load({}, environment)  # an unknown name or a wrong value raises
    assert {source for source in loaded.sources.values() if source != "default"} == set(environment)


def test_grace_periods_leave_time_to_drain() -> None:
    pod = load("deploy/kubernetes/sidecar.yaml")["spec"]
    service = load("deploy/compose.yaml")["services"]["logprob-proxy"]
    for name, environment in environments():
        if name == "Dockerfile":
            continue
        told = settings.load({}, environment).settings
        grace = {
            "sidecar": pod["terminationGracePeriodSeconds"],
            "compose": float(service["stop_grace_period"].removesuffix("s")),
        }[name]
        assert grace > told.drain_delay + told.drain_timeout


def test_sidecar_is_confined_and_probed_on_the_admin_port() -> None:
    container = sidecar()
    pod = load("deploy/kubernetes/sidecar.yaml")["spec"]
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    admin = next(entry["value"] for entry in container["env"] if entry["name"] == "LOGPROB_PROXY_ADMIN")
    assert admin.endswith(f":{ports['metrics']}")
    probes = {name: probe["httpGet"] for name, probe in container.items() if name.endswith("Probe")}
    assert probes["livenessProbe"] == {"path": "/healthz", "port": "metrics"}
    assert probes["readinessProbe"] == {"path": "/readyz", "port": "metrics"}


def test_image_runs_the_command_as_a_number_that_is_not_root() -> None:
    assert [json.loads(line) for line in instructions("ENTRYPOINT")] == [["logprob-proxy"]]
    assert [json.loads(line) for line in instructions("CMD")] == [["serve"]]
    (user,) = instructions("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert len(instructions("FROM")) == 2


def test_builder_gets_every_file_that_the_image_copies() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        source
        for line in instructions("COPY")
        if not line.startswith("--from")
        for source in line.split()[:-1]
    }
    assert copied == sent
    for source in copied:
        assert (ROOT / source).exists(), source


def test_what_is_mounted_is_there_and_where_it_is_looked_for() -> None:
    services = load("deploy/compose.monitoring.yaml")["services"]
    mounts = {}
    for service in services.values():
        for volume in service["volumes"]:
            source, target = volume.split(":")[:2]
            if source.startswith("."):
                assert (ROOT / "deploy" / source).exists(), source
                mounts[target] = ROOT / "deploy" / source
    (provider,) = load("deploy/grafana/provisioning/dashboards/logprob-proxy.yaml")["providers"]
    assert f"{provider['options']['path']}/logprob-proxy.json" in mounts
    (source,) = load("deploy/grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    assert source["url"] == "${PROMETHEUS_URL}"
    assert "PROMETHEUS_URL" in services["grafana"]["environment"]
    # In the proxy's network: the address that the example configuration scrapes.
    assert services["prometheus"]["network_mode"] == "service:logprob-proxy"
    (job,) = yaml.safe_load((mounts["/etc/prometheus"] / "prometheus.yml").read_text())["scrape_configs"]
    assert job["static_configs"][0]["targets"] == ["127.0.0.1:6521"]
