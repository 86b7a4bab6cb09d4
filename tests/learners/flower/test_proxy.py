"""What nginx passes on by the configuration that `coalitions deploy` writes: calls of nodes."""

from __future__ import annotations

import http.server
import socket
import ssl
import subprocess
import threading
from contextlib import ExitStack

import pytest

from learners.flower.project import write_project
from tests.learners.flower.machines import NGINX, TRICKS, ask_raw, neighbouring_ports, until

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")

CALLS = ["register-node", "activate-node", "send-node-heartbeat", "pull-messages", "push-object"]


class Stub(http.server.BaseHTTPRequestHandler):
    """A SuperLink that says what it was asked."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(self.path)
        answer = f"{self.path} {len(body)} {self.headers['X-Forwarded-For']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxy") / "app"
    write_project(folder, clients=1, port=neighbouring_ports())
    subprocess.run(["./keys.sh", "127.0.0.1"], cwd=folder, check=True, capture_output=True)
    return folder


def port_of(folder):
    return int((folder / "nginx.conf").read_text().split("listen ")[1].split()[0])


def stub_of(folder, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.with_suffix(".pem"), certificate.with_suffix(".key"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port_of(folder) + 1), Stub)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.asked = []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server


@pytest.fixture(scope="module")
def proxy(folder):
    log = (folder / "log").open("w")
    process = subprocess.Popen(["./proxy.sh"], cwd=folder, stderr=log)
    yield process
    process.terminate()
    process.wait()
    log.close()


@pytest.fixture
def stub(folder, proxy):
    until(lambda: listens(port_of(folder)), "nginx's start", 10)
    server = stub_of(folder, folder / "keys" / "server")
    yield server
    server.shutdown()
    server.server_close()


def listens(port):
    with socket.socket() as end:
        return end.connect_ex(("127.0.0.1", port)) == 0


def ask(folder, path, method="POST", body=b""):
    return ask_raw("127.0.0.1", port_of(folder), folder / "keys" / "ca.pem", path, method, body)


def test_nginx_takes_the_configuration(folder):
    done = subprocess.run(
        ["./proxy.sh", "-t"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr.replace('the "user" directive', "")


@pytest.mark.parametrize("call", CALLS)
def test_the_calls_of_nodes_are_passed_on(folder, stub, call):
    status, answer = ask(folder, f"/v1/fleet/{call}", body=b"x" * 1000)
    assert (status, answer) == (200, f"/v1/fleet/{call} 1000 127.0.0.1")


def test_a_large_message_is_passed_on(folder, stub):
    status, answer = ask(folder, "/v1/fleet/push-object", body=b"x" * (7 << 20))
    assert (status, answer.split()[1]) == (200, str(7 << 20))


def test_a_message_that_no_node_sends_is_refused(folder, stub):
    assert ask(folder, "/v1/fleet/push-object", body=b"x" * (9 << 20))[0] == 413
    assert stub.asked == []


def test_one_machine_cannot_keep_all_connections_busy(folder, stub):
    authority, port = folder / "keys" / "ca.pem", port_of(folder)
    context = ssl.create_default_context(cafile=authority)
    begun = b"POST /v1/fleet/pull-messages HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(64):
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            end = stack.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1"))
            end.sendall(begun)
        until(lambda: ask(folder, "/v1/fleet/pull-messages")[0] == 503, "a refusal", 10)
    until(lambda: ask(folder, "/v1/fleet/pull-messages")[0] == 200, "room again", 10)


@pytest.mark.parametrize("path", TRICKS)
def test_all_else_is_refused_and_does_not_reach_the_superlink(folder, stub, path):
    assert ask(folder, path)[0] == 403
    assert stub.asked == []


@pytest.mark.parametrize("path", ["/../../v1/control/start-run", "/v1/fleet/x%00"])
def test_a_path_that_is_none_is_refused(folder, stub, path):
    assert ask(folder, path)[0] in (400, 403)
    assert stub.asked == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE"])
def test_a_method_that_no_node_has_is_refused(folder, stub, method):
    assert ask(folder, "/v1/fleet/pull-messages", method)[0] in (400, 403, 405)
    assert stub.asked == []


def test_who_was_refused_is_in_the_log(folder, stub):
    ask(folder, "/v1/control/start-run")
    until(lambda: "/v1/control/start-run" in (folder / "log").read_text(), "a line in the log", 5)
    assert "client: 127.0.0.1" in (folder / "log").read_text()


def test_a_superlink_with_another_certificate_gets_nothing(folder, proxy, tmp_path):
    until(lambda: listens(port_of(folder)), "nginx's start", 10)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
         "-keyout", "other.key", "-out", "other.pem"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    server = stub_of(folder, tmp_path / "other")
    assert ask(folder, "/v1/fleet/pull-messages")[0] == 502
    assert server.asked == []
    server.shutdown()
    server.server_close()


def test_a_new_certificate_is_taken_without_a_stop(folder, proxy):
    until(lambda: listens(port_of(folder)), "nginx's start", 10)

    def shown():
        return ssl.get_server_certificate(("127.0.0.1", port_of(folder)))

    before = shown()
    subprocess.run(["./keys.sh", "renew"], cwd=folder, check=True, capture_output=True)
    assert shown() == before
    subprocess.run(["./proxy.sh", "-s", "reload"], cwd=folder, check=True, capture_output=True)
    new = (folder / "keys" / "server.pem").read_text()
    assert new != before
    until(lambda: shown() == new, "the new certificate", 10)
