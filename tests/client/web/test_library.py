"""The library of a real `ragchat web`: over HTTP, then in a browser.

Covers `ragchat.web.sources`, `ragchat.web.loads` and, with their own files, `uploads` and `changes`.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import pytest

from tests.support.browser import Browser, Page, axe, expect, scrolls_sideways, serving, visiting
from tests.support.embeddings_server import embeddings_server
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program

pytestmark = pytest.mark.full

TEA = "# Tea\n\nGreen tea is brewed at 75 degrees.\n"


def events(client: httpx2.Client) -> Generator[list[dict[str, Any]], None, None]:
    """The jobs, whenever they have changed."""
    with client.stream("GET", "/api/library/jobs") as response:
        for line in response.iter_lines():
            yield json.loads(line)["jobs"]


def ended(client: httpx2.Client, id: str) -> dict[str, Any]:
    """A job when it has ended."""
    with closing(events(client)) as changes:
        for jobs in changes:
            for job in jobs:
                if job["id"] == id and job["status"] != "running":
                    return job
    raise AssertionError("the jobs are no longer told")


def dropped(client: httpx2.Client, **files: str) -> dict[str, Any]:
    """The job that has loaded these files."""
    for name, text in files.items():
        client.put("/api/library/files", params={"name": name}, content=text.encode()).raise_for_status()
    return ended(client, asked(client, "files/load", names=[*files])["job"])


def asked(client: httpx2.Client, what: str, **body: Any) -> dict[str, Any]:
    response = client.post(f"/api/library/{what}", json=body)
    return dict(response.raise_for_status().json())


def listed(client: httpx2.Client, **parameters: str) -> dict[str, Any]:
    response = client.get("/api/library/documents", params=parameters)
    return dict(response.raise_for_status().json())


def names(client: httpx2.Client, **parameters: str) -> list[str]:
    return [document["name"] for document in listed(client, **parameters)["documents"]]


async def test_a_file_that_is_dropped_again_is_the_same_document(program: Program) -> None:
    async with serving(program) as web:
        with web.signed_in() as client:
            job = dropped(client, **{"tea.md": TEA, "notes/cup.md": "# Cups"})
            assert (job["summary"], job["failures"]) == ("2 added (2 chunks).", [])
            assert names(client) == ["notes/cup.md", "tea.md"]
            assert dropped(client, **{"tea.md": TEA})["summary"] == "1 unchanged (1 chunk)."
            job = dropped(client, **{"tea.md": TEA + "And cups.\n"})
            assert job["summary"] == "1 updated (1 chunk)."

            [document] = listed(client, q="tea.md")["documents"]
            assert (document["kind"], document["is_copy"], document["title"]) == ("MD", True, "Tea")
            shown = client.get("/api/library/difference", params={"id": document["id"]}).json()
            assert ["+", None, 4, "And cups."] in shown["lines"]
            versions = client.get("/api/library/versions", params={"id": document["id"]}).json()["versions"]
            said = asked(client, "restore", document=document["id"], version=versions[1]["number"])["said"]
            assert said[0].startswith(f"Restored version {versions[1]['number']} of ")
            refused = client.post("/api/library/undo", json={"group": job["group"]})
            assert "written again later" in refused.json()["error"]["message"]
        # A walk skips the copies.
        assert program("inject", "--json", str(program.home / "data")).json["documents"] == []
    assert "And cups." not in program("memory", "show", "tea.md").out


async def test_the_copy_of_a_file_that_cannot_be_read_is_removed_and_named_as_it_was_dropped(
    program: Program,
) -> None:
    async with serving(program) as web:
        with web.signed_in() as client:
            job = dropped(client, **{"notes/bin.dat": "\0\1", "none.md": "", "tea.md": TEA})
    assert job["failures"] == ["failed: notes/bin.dat is not text.", "skipped: none.md is empty"]
    assert {path.name for path in program.home.rglob("*.db-files/**/*.*")} == {"tea.md"}


async def test_what_is_forgotten_and_what_a_load_has_written_is_undone(program: Program) -> None:
    async with serving(program) as web:
        with web.signed_in() as client:
            job = dropped(client, **{"a.md": "# A", "b.md": "# B"})
            [document, _] = listed(client)["documents"]
            done = client.delete("/api/library/documents", params={"id": document["id"]}).json()
            assert done["said"] == ["Removed a.md (1 chunk)."]
            assert names(client) == ["b.md"]
            asked(client, "undo", group=done["group"])
            assert names(client) == ["a.md", "b.md"]
            asked(client, "undo", group=job["group"])
            assert names(client) == []
            entries = client.get("/api/library/journal").json()["entries"]
            # The page shows those of one group in one line.
            groups = [entry["group"] for entry in entries if entry["action"] == "undone"]
            assert len(groups) == 3  # a.md after its removal, then both
            assert groups[0] == groups[1] not in ("", groups[2])
            assert not any(entry["can_undo"] for entry in entries)


async def test_a_killed_upload_leaves_nothing_half_loaded(program: Program) -> None:
    async with serving(program) as web:
        with web.signed_in() as client:
            dropped(client, **{"tea.md": TEA})
            address = urlsplit(web.origin)
            cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
            with socket.create_connection((address.hostname, address.port), LONGEST_SECONDS) as connection:
                head = (
                    f"PUT /api/library/files?name=tea.md HTTP/1.1\r\nHost: {address.netloc}\r\n"
                    f"Origin: {web.origin}\r\nCookie: {cookie}\r\nContent-Length: 100000000\r\n\r\n"
                )
                connection.sendall(head.encode())
                copies = program.home / "data" / "memory.db-files"
                while not [*copies.glob(".tea.md-*")]:
                    connection.sendall(b"half ")
                web.process.kill()
    assert (copies / "tea.md").read_text(encoding="utf-8") == TEA
    async with serving(program) as web:
        with web.signed_in() as client:
            assert names(client) == ["tea.md"]
            assert dropped(client, **{"tea.md": TEA})["summary"] == "1 unchanged (1 chunk)."


async def test_a_file_that_is_too_large_or_cannot_be_copied_is_refused_with_a_sentence(
    program: Program, tmp_path: Path
) -> None:
    settings = tmp_path / "small.toml"
    settings.write_text("[web]\nupload_bytes = 10\n", encoding="utf-8")
    async with serving(program, "--config", str(settings)) as web:
        with web.signed_in() as client:
            refused = client.put("/api/library/files?name=x.md", content=b"x" * 11)
            assert refused.status_code == 413
            assert refused.json()["error"]["message"] == "x.md is larger than 10 bytes."

            def parts() -> Iterator[bytes]:
                yield from [b"x" * 6] * 2

            assert client.put("/api/library/files?name=x.md", content=parts()).status_code == 413
            client.put("/api/library/files?name=x", content=b"x").raise_for_status()
            refused = client.put("/api/library/files?name=x/y.md", content=b"x")
            assert refused.json()["error"]["message"].startswith("x/y.md cannot be copied to ")
            assert client.put("/api/library/files?name=..", content=b"x").status_code == 200
            foreign = client.put(
                "/api/library/files?name=z", content=b"x", headers={"origin": "https://example.org"}
            )
            assert foreign.status_code == 403
    copies = program.home / "data" / "memory.db-files"
    assert sorted(path.name for path in copies.iterdir()) == ["%2E%2E", "x"]


async def test_a_folder_is_followed_synced_and_missed(program: Program) -> None:
    notes = program.folder / "notes"
    notes.mkdir()
    (notes / "tea.md").write_text(TEA, encoding="utf-8")
    async with serving(program) as web:
        with web.signed_in() as client:
            refused = client.post("/api/library/sources", json={"path": "none"})
            assert refused.json()["error"]["message"] == "none does not exist."
            added = asked(client, "sources", path="notes")
            assert added["said"] == ["Added notes."]
            assert ended(client, added["job"])["summary"] == "1 added (1 chunk)."
            [source] = client.get("/api/library").json()["sources"]
            assert (source["name"], source["documents"], source["outcome"]) == ("notes", 1, "1 added")

            # A job of the terminal is shown, too.
            (notes / "cup.md").write_text("# Cups", encoding="utf-8")
            assert program("sync").code == 0
            with closing(events(client)) as changes:
                jobs = next(changes)
            assert [job["summary"] for job in jobs if job["id"] != added["job"]] == ["1 added, 1 unchanged."]

            notes.rename(program.folder / "elsewhere")
            overview = client.get("/api/library").json()
            [problem] = overview["problems"]
            assert problem["detail"] == "missing: notes"
            assert overview["sources"][0]["outcome"] == "does not exist (now)"
            removed = client.delete(f"/api/library/sources?uri={quote(source['uri'])}&forget=1").json()
            assert removed["said"] == [
                "notes is no longer a source; its 2 documents were removed from memory."
            ]
            assert names(client) == []
            asked(client, "undo", group=removed["group"])
            assert len(names(client)) == 2


async def test_a_load_is_cancelled_and_a_damaged_memory_is_said(program: Program) -> None:
    many = program.folder / "many"
    many.mkdir()
    for number in range(2000):
        (many / f"{number}.md").write_text(f"# Note {number}\n\n" + "Some words. " * 50, encoding="utf-8")
    with embeddings_server() as embedder:
        embedder.hold_after = 1000  # The load does not end by itself.
        slow = {"RAGCHAT_EMBEDDER_KIND": "openai", "RAGCHAT_EMBEDDER_BASE_URL": embedder.url}
        async with serving(replace(program, environ=program.environ | slow)) as web:
            with web.signed_in() as client:
                job = asked(client, "sources", path="many")["job"]
                with closing(events(client)) as changes:
                    next(jobs for jobs in changes if jobs and jobs[0]["files"])
                assert embedder.reached.wait(LONGEST_SECONDS)
                assert client.post(f"/api/library/jobs/{job}/cancel", json={}).status_code == 200
                assert ended(client, job)["status"] == "cancelled"
                assert client.post("/api/library/jobs/none/cancel", json={}).status_code == 404
                with client.stream("POST", "/api/library/verify", json={}) as response:
                    last = [json.loads(line) for line in response.iter_lines()][-1]
                assert (last["type"], last["ok"]) == ("verified", True)
    memory = program.home / "data" / "memory.db"
    memory.write_bytes(b"not a database" * 1000)
    async with serving(program) as web:
        with web.signed_in() as client:
            overview = client.get("/api/library").json()
            assert overview["documents"] is None
            assert [one["name"] for one in overview["problems"] if one["status"] == "fault"] == ["memory"]


async def test_documents_are_filtered_by_name_and_folder_and_come_in_pages(program: Program) -> None:
    for folder, number in (("tea", 120), ("cups & more", 2)):
        (program.folder / folder).mkdir()
        for one in range(number):
            (program.folder / folder / f"{one:03}.md").write_text(f"# {folder} {one}", encoding="utf-8")
    program("inject", ".")
    async with serving(program) as web:
        with web.signed_in() as client:
            first = listed(client, q="TEA")
            assert (len(first["documents"]), first["total"]) == (100, 120)
            rest = listed(client, q="TEA", cursor=first["cursor"])
            assert (len(rest["documents"]), rest["cursor"]) == (20, "")
            [root] = client.get("/api/library/folders").json()["folders"]
            assert (root["name"], root["documents"]) == (str(program.folder), 122)
            inner = client.get("/api/library/folders", params={"in": root["uri"]}).json()["folders"]
            assert [(one["name"], one["documents"]) for one in inner] == [("cups & more", 2), ("tea", 120)]
            assert names(client, **{"in": inner[0]["uri"]}, q="001") == ["cups & more/001.md"]
            assert listed(client, **{"in": inner[0]["uri"]})["folder"] == "cups & more"
            assert listed(client)["folder"] == ""
            assert listed(client, q="nothing of it")["total"] == 0
            assert listed(client, q="cups & more/*.md")["total"] == 2
            assert listed(client, q="#none")["total"] == 0
            assert client.get("/api/library/documents?sort=size").status_code == 400


async def test_a_folder_that_narrows_the_list_is_named_and_left_after_a_reload(
    browser: Browser, program: Program
) -> None:
    for name in ("tea/green.md", "cups/blue.md"):
        (program.folder / name).parent.mkdir()
        (program.folder / name).write_text(f"# {name}", encoding="utf-8")
    program("inject", "tea", "cups")
    async with (
        serving(program) as web,
        visiting(browser, web, viewport={"width": 360, "height": 800}) as page,
    ):
        await page.goto(web.origin + "/library")
        await page.locator(".tree summary").click()
        await page.get_by_role("button", name="Folders in").click()
        await page.get_by_role("button", name="tea", exact=True).click()
        await expect(page.get_by_text("1 of 1 document in tea")).to_be_visible()
        await page.reload()
        await expect(page.get_by_text("1 of 1 document in tea")).to_be_visible()
        await page.get_by_label("Filter").fill("blue")
        await expect(page.get_by_text("No document in tea matches.")).to_be_visible()
        await page.get_by_label("Filter").fill("")
        await page.get_by_role("button", name="All folders").press("Enter")
        await expect(page.get_by_text("2 of 2 documents")).to_be_visible()
        await expect(page.get_by_role("button", name="All folders")).to_have_count(0)
        await expect(page.get_by_label("Filter")).to_be_focused()
        await expect(page).to_have_url(web.origin + "/library")


async def choose(page: Page, *files: tuple[str, str]) -> None:
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="Choose files").click()
    payload = [{"name": name, "mimeType": "text/plain", "buffer": text.encode()} for name, text in files]
    await (await chooser.value).set_files(payload)  # type: ignore[arg-type]


async def drop(page: Page, *paths: Path) -> None:
    """Drop files and folders by mouse, away from the zone for them."""
    devtools = await page.context.new_cdp_session(page)
    dragged = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        await devtools.send("Input.dispatchDragEvent", {"type": kind, "x": 200, "y": 20, "data": dragged})


async def test_the_library_begins_empty_and_is_used_by_keyboard(browser: Browser, program: Program) -> None:
    async with (
        serving(program) as web,
        visiting(browser, web, viewport={"width": 360, "height": 800}) as page,
    ):
        await page.goto(web.origin + "/library")
        await expect(page.get_by_text("Memory is empty.")).to_be_visible()
        await axe(page)
        await choose(page, ("tea.md", TEA), ("<img src=x>.md", "# <script>alert(1)</script>"))
        await expect(page.locator(".job")).to_contain_text("2 added (2 chunks).")
        await expect(page.get_by_role("link", name="Tea", exact=True)).to_be_visible()
        await expect(page.get_by_text("<img src=x>.md", exact=False).first).to_be_visible()
        assert not await scrolls_sideways(page)

        changed = program.folder / "dropped" / "tea.md"
        changed.parent.mkdir()
        changed.write_text(TEA + "And cups.\n", encoding="utf-8")
        (changed.parent / "inner").mkdir()
        (changed.parent / "inner" / "cups.md").write_text("# Cups\n", encoding="utf-8")
        await drop(page, changed, changed.parent / "inner")
        await expect(page.locator(".job").first).to_contain_text("1 added, 1 updated")
        await page.get_by_label("Filter").fill("tea")
        await expect(page.get_by_text("1 of 1 document")).to_be_visible()
        await axe(page)
        await page.get_by_role("button", name="Forget Tea").press("Enter")
        await page.get_by_role("dialog").get_by_role("button", name="Forget").press("Enter")
        await expect(page.get_by_text("Removed tea.md (1 chunk).")).to_be_visible()
        await page.keyboard.press("Enter")  # Undo has the focus.
        await expect(page.get_by_text("It is back in memory.")).to_be_visible()

        await page.get_by_role("link", name="Versions of Tea").click()
        # Before the removal and its undo.
        await page.get_by_role("button", name="Changes of version").nth(2).press("Enter")
        await expect(page.get_by_role("row", name="4 added And cups.")).to_be_visible()
        await axe(page)
        assert not await scrolls_sideways(page)
        await page.get_by_role("link", name="Changes").click()
        await expect(page.get_by_role("button", name="Undo all 2: 2 added")).to_be_visible()
        await axe(page)
        await page.get_by_role("link", name="Folders").click()
        await page.get_by_role("button", name="Check the memory for damage").press("Enter")
        await expect(page.get_by_text("The memory is intact.")).to_be_visible()
        await axe(page)
        assert not await scrolls_sideways(page)


async def test_chosen_files_that_are_not_loaded_are_named(browser: Browser, program: Program) -> None:
    held: list[Any] = []

    async def hold(route: Any) -> None:
        held.append(route)

    def file(name: str) -> Any:
        return {"name": name, "mimeType": "text/markdown", "buffer": TEA.encode()}

    async with serving(program) as web, visiting(browser, web) as page:
        await page.goto(f"{web.origin}/library")
        chosen = page.locator("input[type=file]").first
        await chosen.set_input_files([file(".hidden.md")])
        zone = page.get_by_role("region", name="Load files")
        await expect(zone).to_contain_text(".hidden.md is not loaded")
        await page.route("**/api/library/files?*", hold)
        await chosen.set_input_files([file("tea.md")])
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        await chosen.set_input_files([file("cups.md")])
        await expect(page.get_by_role("alert")).to_contain_text("Wait until the files are sent")
        for route in held:
            await route.continue_()
        await expect(page.get_by_role("list", name="Loads")).to_contain_text("1 added")


async def test_a_long_name_stays_within_the_dialog_on_a_phone(browser: Browser, program: Program) -> None:
    program("inject", "-", "--uri", f"note:{'w' * 120}", stdin=TEA)
    phone = {"width": 360, "height": 740}
    async with serving(program) as web, visiting(browser, web, viewport=phone) as page:
        await page.goto(web.origin + "/library")
        await page.get_by_role("button", name="Forget Tea").click()
        assert await page.get_by_role("dialog").evaluate("one => one.scrollWidth <= one.clientWidth")
