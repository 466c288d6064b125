"""Starting the page: what is printed and opened, where it listens, what protects it there.

Of `serving` and `ragchat.commands.web`.
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from ragchat.web.access import FREE_TRIES
from tests.support.browser import Browser, Web, chromium_running, expect, serving, web_process
from tests.support.certificates import certificate_of
from tests.support.processes import LONGEST_SECONDS, processes_in
from tests.support.program import Program

pytestmark = pytest.mark.full

PASSWORD = "correct horse battery staple"


@pytest.fixture
def password_file(program: Program) -> str:
    path = program.folder / "password"
    path.write_text(PASSWORD + "\n", encoding="utf-8")
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def certificate(program: Program) -> str:
    path = program.folder / "localhost.pem"
    path.write_bytes(certificate_of("localhost"))
    return str(path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_the_key_reaches_the_browser_in_a_private_file_and_no_command_line(program: Program) -> None:
    from tests.support.terminal import Terminal

    opened = program.folder / "opened"
    os.mkfifo(opened)
    script = program.folder / "browser"
    script.write_text(f'#!/bin/sh\necho "$@" > {opened}\n', encoding="utf-8")
    script.chmod(0o755)
    command = [sys.executable, "-m", "ragchat", "web"]
    with Terminal(command, {**program.variables, "BROWSER": str(script)}, program.folder) as terminal:
        address = opened.read_text(encoding="utf-8").strip()
        page = Path(urlsplit(address).path)
        assert page.stat().st_mode & 0o777 == 0o600
        content = page.read_text(encoding="utf-8")
        url = content.partition("url=")[2].partition('"')[0]
        terminal.wait_for(r"ragchat is at http://127\.0\.0\.1:\d+/sign-in\?key=")
        terminal.wait_for("Enter prints another address")
        keys = {key.split()[0] for key in (url + " " + terminal.text).split("key=")[1:]}
        assert len(keys) == 2
        commands = processes_in(program.folder)
        assert len(commands) >= 2  # the page and its memory
        assert not [key for key in keys for command in [address, *commands.values()] if key in command]
        for expected in (200, 401):  # of two browsers: the key is valid once
            answer = httpx2.get(url, follow_redirects=True, timeout=LONGEST_SECONDS)
            assert answer.status_code == expected
        terminal.enter()
        terminal.wait_for(r"(?s)key=.*key=")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--host", "0.0.0.0"], "there is no password"),
        (["--host", "0.0.0.0", "--password-file", "PASSWORD"], "others could read what it sends"),
        (
            [
                "--host",
                "0.0.0.0",
                "--password-file",
                "PASSWORD",
                "--certificate",
                "PEM",
                "--private-key",
                "PEM",
            ],
            "no browser can open 0.0.0.0",
        ),
        (["--host", "0.0.0.0", "--certificate", "PEM", "--private-key", "PEM"], "there is no password"),
        (["--host", "0.0.0.0", "--public-url", "https://a.example"], "there is no password"),
        (["--public-url", "https://a.example"], "there is no password"),
        (["--host", "::"], "there is no password"),
        *(
            (["--password-file", "PASSWORD", "--public-url", url], "is not the address of a proxy")
            for url in (
                "http://a.example",
                "a.example",
                "https://",
                "https://a.example/b",
                "https://u@a.example",
            )
        ),
        (["--certificate", "PASSWORD", "--private-key", "PASSWORD"], "the certificate"),
        (["--certificate", "nothing", "--private-key", "nothing"], "no such file"),
    ],
)
def test_a_page_that_others_reach_needs_a_password_and_tls(
    program: Program, password_file: str, certificate: str, words: list[str], reason: str
) -> None:
    named = {"PASSWORD": password_file, "PEM": certificate}
    done = program("web", "--no-open", *(named.get(word, word) for word in words))
    assert done.code == 1
    assert reason in done.err
    assert "Traceback" not in done.err


def test_a_password_that_others_may_read_is_refused(program: Program, password_file: str) -> None:
    Path(password_file).chmod(0o644)
    done = program("web", "--no-open", "--password-file", password_file)
    assert done.code == 1
    assert "chmod 600" in done.err


@pytest.mark.smoke
async def test_the_password_lets_a_browser_in(browser: Browser, program: Program, password_file: str) -> None:
    async with serving(program, "--password-file", password_file) as web:
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(web.origin + "/library")
        await expect(page).to_have_url(web.origin + "/sign-in")
        await page.keyboard.type("wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_have_text("This is not the password.")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_label("Question")).to_be_visible()
        await context.close()


def test_many_slow_requests_cannot_try_more_passwords_than_quick_ones(
    program: Program, password_file: str
) -> None:
    with web_process(program, "--password-file", password_file) as web:
        tries = [_begun(web) for _ in range(4 * FREE_TRIES)]
        for connection in tries:  # All together: the wait that is said becomes shorter.
            connection.sendall(b"g")
        answers = []
        for connection in tries:
            with connection:
                answers.append(b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode())  # noqa: B023
    assert sum("This is not the password." in answer for answer in answers) == FREE_TRIES
    assert sum("Too many tries: wait 5 s." in answer for answer in answers) == 3 * FREE_TRIES


def _begun(web: Web) -> socket.socket:
    """A connection that has sent a wrong password but for its last letter."""
    ours = urlsplit(web.origin)
    connection = socket.create_connection((ours.hostname, ours.port), LONGEST_SECONDS)
    head = f"POST /sign-in HTTP/1.1\r\nHost: {ours.netloc}\r\nOrigin: {web.origin}\r\nConnection: close\r\n"
    connection.sendall(f"{head}Content-Length: 14\r\n\r\npassword=wron".encode())
    return connection


def test_a_certificate_makes_it_https_with_a_secure_cookie(program: Program, certificate: str) -> None:
    words = ["--host", "localhost", "--certificate", certificate, "--private-key", certificate]
    with web_process(program, *words) as web:
        assert web.origin.startswith("https://localhost:")
        trusting = ssl.create_default_context(cafile=certificate)
        with web.signed_in(verify=trusting) as client:
            (cookie,) = client.cookies.jar
            assert cookie.secure
            assert client.get("/api/sessions").status_code == 200
            assert client.post("/api/sessions", json={}).status_code == 200
            plain = {"origin": web.origin.replace("https:", "http:")}
            assert client.post("/api/sessions", json={}, headers=plain).status_code == 403


@pytest.mark.parametrize("public_url", ["https://notes.example.org", "https://Notes.example.org:443/"])
def test_behind_a_proxy_the_page_answers_to_the_proxys_address(
    program: Program, password_file: str, public_url: str
) -> None:
    words = ["--public-url", public_url, "--password-file", password_file, "--port", "0"]
    with web_process(program, *words, python=sys.executable) as web:
        assert web.origin == "https://notes.example.org"
        (port,) = _listening(web.process.pid)
        proxied = {"host": "notes.example.org", "origin": "https://notes.example.org"}
        here = f"http://127.0.0.1:{port}"
        with httpx2.Client(base_url=here, headers=proxied, timeout=LONGEST_SECONDS) as client:
            answer = client.post("/sign-in", content=f"password={PASSWORD.replace(' ', '+')}")
            assert answer.status_code == 200
            assert {"secure", "httponly", "samesite=strict", "path=/"} <= set(
                answer.headers["set-cookie"].lower().split("; ")
            )
            given = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
            assert client.get("/api/sessions", headers=given).status_code == 200
            for header, value in (
                ("origin", "http://notes.example.org"),
                ("origin", "https://notes.example.org:8443"),
                ("host", "notes.example.org:8443"),
                ("host", "evil.example"),
            ):
                assert (
                    client.post("/api/sessions", json={}, headers={**given, header: value}).status_code == 403
                )


def _listening(pid: int) -> set[int]:
    """The ports of loopback on which a process listens. Linux."""
    links = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # It has been closed meanwhile.
            links.add(str(file.readlink()))
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {
        int(line[1].split(":")[1], 16) for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in links
    }


def test_a_port_that_is_taken_is_named(program: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = program("web", "--no-open", "--port", f"{taken.getsockname()[1]}")
    assert done.code == 1
    assert f"{taken!r}" not in done.err
    assert "already in use" in done.err


def test_ctrl_c_ends_it_with_success_also_while_a_browser_is_connected(program: Program) -> None:
    with web_process(program) as web, web.signed_in() as client:
        client.get("/api/sessions")
        web.stop()
        assert web.process.returncode == 0


async def test_a_browser_without_the_key_is_sent_to_the_sign_in_page(program: Program) -> None:
    async with serving(program) as web, chromium_running() as browser:
        page = await browser.new_page()
        await page.goto(web.origin + "/sessions/0123")
        await expect(page).to_have_url(web.origin + "/sign-in")
        await expect(page.get_by_label("Password")).to_be_hidden()
        await expect(page.locator("main")).to_contain_text("it prints an address that lets this browser in")
