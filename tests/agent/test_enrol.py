from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from agent import enrol, wire
from agent.main import main
from tests.agent.support import Authority


class Portal(HTTPServer):
    """Answers every enrolment with what the test wants."""

    def __init__(self, authority: Authority) -> None:
        super().__init__(("127.0.0.1", 0), _Enrolment)
        self.authority = authority
        self.asked: list[tuple[str, wire.EnrolmentRequest]] = []
        self.answer: tuple[int, dict[str, Any]] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Enrolment(BaseHTTPRequestHandler):
    server: Portal

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = wire.EnrolmentRequest.model_validate_json(body)
        self.server.asked.append((self.path, request))
        status, document = self.server.answer or (201, self._signed(request))
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _signed(self, request: wire.EnrolmentRequest) -> dict[str, Any]:
        key = x509.load_pem_x509_csr(request.csr_pem.encode()).public_key()
        return {
            "node_id": "n1",
            "certificate_pem": self.server.authority.certify(key, "urn:gpucommons:node:n1"),
            "ca_pem": self.server.authority.pem,
        }


@pytest.fixture
def portal(authority: Authority) -> Iterator[Portal]:
    server = Portal(authority)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def command(portal: Portal, data: Path) -> list[str]:
    return [
        *("enrol", "--portal", portal.url, "--code", "ABC", "--name", "gpu-7"),
        *("--address", "https://gpu-7:8443", "--data", str(data)),
    ]


def test_the_key_is_made_here_and_only_the_request_is_sent(
    portal: Portal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    assert main(command(portal, data)) == 0
    assert json.loads(capsys.readouterr().out) == {"node_id": "n1", "node_name": "gpu-7"}
    path, request = portal.asked[0]
    assert path == "/api/v1/nodes/enrol"
    assert (request.code, request.node_name) == ("ABC", "gpu-7")
    assert request.address == "https://gpu-7:8443"
    identity = enrol.load(data)
    key = serialization.load_pem_private_key(identity.key_pem.encode(), None)
    certificate = x509.load_pem_x509_certificate(identity.certificate_pem.encode())
    assert certificate.public_key() == key.public_key()
    assert "PRIVATE" not in request.csr_pem
    assert stat.S_IMODE((data / "identity.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "answer",
    [
        (403, {"code": "fleet.code_used", "detail": "The code was used."}),
        (500, {}),
        (201, {"node_id": "n1"}),
    ],
)
def test_a_refused_enrolment_leaves_nothing(
    portal: Portal, tmp_path: Path, answer: tuple[int, dict[str, Any]]
) -> None:
    portal.answer = answer
    assert main(command(portal, tmp_path)) == 1
    with pytest.raises(enrol.NotEnrolled):
        enrol.load(tmp_path)


def test_the_portals_reason_is_shown(
    portal: Portal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answer = (403, {"code": "fleet.code_used", "detail": "The code was used."})
    main(command(portal, tmp_path))
    assert "fleet.code_used: The code was used." in capsys.readouterr().err


@pytest.mark.parametrize("url", ["ftp://portal", "portal", "http://127.0.0.1:1"])
def test_a_portal_that_is_not_there_is_said(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["enrol", "--portal", url, "--code", "A", "--address", "https://a:1"]
    assert main([*arguments, "--data", str(tmp_path)]) == 1
    assert url in capsys.readouterr().err


def test_a_node_that_is_not_enrolled_does_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--data", str(tmp_path), "--listen", "127.0.0.1:0"]) == 1
    assert "enrol first" in capsys.readouterr().err
