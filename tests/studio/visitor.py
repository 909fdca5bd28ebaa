"""Somebody who visits a studio: sends plain forms, as a browser without scripts does, and reads what comes back."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

from treetop.addons.studio import opened


class _Forms(HTMLParser):
    """Collects the fields that a browser would send of every form that is left as it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, list[str]]] = []
        self.actions: list[str] = []
        self._text: tuple[str, list[str]] | None = None
        self._select: tuple[str, list[tuple[str, bool]]] | None = None
        self._inside = False

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        found = {name: "" if value is None else value for name, value in given}
        if tag == "form":
            self.forms.append({})
            self.actions.append(found.get("action", ""))
            self._inside = True
        elif not self._inside:
            return
        elif tag == "input" and found.get("type") not in ("file", "submit"):
            if found.get("type") not in ("checkbox", "radio") or "checked" in found:
                self._add(found.get("name", ""), found.get("value", "on" if found.get("type") == "checkbox" else ""))
        elif tag == "textarea":
            self._text = (found["name"], [])
        elif tag == "select":
            self._select = (found["name"], [])
        elif tag == "option" and self._select is not None:
            self._select[1].append((found.get("value", ""), "selected" in found))
        elif tag == "button" and found.get("name") and found["name"] not in self.forms[-1]:
            self._add(found["name"], found.get("value", ""))  # Enter presses the first

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text[1].append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        elif tag == "textarea" and self._text is not None:
            self._add(self._text[0], "\r\n".join("".join(self._text[1]).splitlines()))
            self._text = None
        elif tag == "select" and self._select is not None:
            chosen = [value for value, selected in self._select[1] if selected]
            self._add(self._select[0], (chosen or [value for value, _ in self._select[1]])[0])
            self._select = None

    def _add(self, name: str, value: str) -> None:
        self.forms[-1].setdefault(name, []).append(value)


@dataclass
class Page:
    """What was answered."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def plain(self) -> str:
        """Its text, without markup."""
        return " ".join(unescape(re.sub("<[^>]+>", " ", self.text)).split())

    def forms(self) -> list[tuple[str, dict[str, list[str]]]]:
        """The forms, each as where it goes and what a browser sends if nobody changes it."""
        found = _Forms()
        found.feed(self.text)
        return list(zip(found.actions, found.forms, strict=True))

    def field(self, name: str) -> str:
        """The value of a field of a form."""
        found = re.search(rf'<input[^>]*name="{re.escape(name)}"[^>]*value="([^"]*)"', self.text)
        assert found, name
        return unescape(found[1])


@dataclass
class Visitor:
    """Somebody with a link."""

    folder: Path
    link: str
    cookie: str = ""
    room: str = ""
    shelf: str = ""
    pages: list[Page] = field(default_factory=list)
    """All that was answered."""

    @property
    def host(self) -> str:
        """The address of the studio."""
        return self.link.split("/")[2]

    def ask(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> Page:
        """Send a request as it is; a path without a slash is of the studio's own pages."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie and "Cookie" not in given:
            given["Cookie"] = self.cookie
        connection = http.client.HTTPConnection(self.host.split(":")[0], int(self.host.split(":")[1]), timeout=60)
        try:
            connection.request(method, path if path.startswith("/") else f"{self.room}/{path}", body, given)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            page = Page(answer.status, told, answer.read().decode("utf-8", "replace"))
        finally:
            connection.close()
        self.pages.append(page)
        while "working?id=" in page.headers.get("location", "") or "data-working" in page.text:  # it takes a while
            time.sleep(0.1)
            page = self.ask("GET", page.headers.get("location", path), Sec_Fetch_Site="same-origin")
        return page

    def enter(self) -> Page:
        """Follow the link."""
        page = self.ask("GET", self.link.removeprefix(f"http://{self.host}"))
        if page.status == 303:
            self.cookie = page.headers["set-cookie"].partition(";")[0]
            self.room = page.headers["location"].rstrip("/")
        return page

    def see(self, path: str) -> Page:
        """Look at a page."""
        return self.ask("GET", path, Sec_Fetch_Site="same-origin")

    def send(self, path: str, /, **form: str | list[str]) -> Page:
        """Send a form with what the page that holds it knows, and return what comes of it."""
        if "seen" not in form and (seen := re.search(r'name="seen" value="(\w+)"', self.see(path).text)):
            form["seen"] = seen[1]
        page = self.post(path, **form)
        return self.see(page.headers["location"]) if page.status == 303 else page

    def post(self, path: str, /, **form: str | list[str]) -> Page:
        """Send a form as it is."""
        kind = "application/x-www-form-urlencoded"
        return self.ask("POST", path, urlencode(form, doseq=True), Content_Type=kind, Origin=f"http://{self.host}")

    def upload(self, name: str, content: str) -> Page:
        """Send a file."""
        body = (
            f'--xyz\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            f"Content-Type: text/csv\r\n\r\n{content}\r\n--xyz--\r\n"
        )
        kind = "multipart/form-data; boundary=xyz"
        page = self.ask("POST", "upload", body.encode(), Content_Type=kind, Origin=f"http://{self.host}")
        return self.see(page.headers["location"]) if page.status == 303 else page

    def wait(self) -> Page:
        """Wait until no release runs."""
        for _ in range(1200):
            if '"running"' not in self.see("progress").text:
                break
            time.sleep(0.05)
        return self.see("release")

    def shown(self, page: Page) -> str:
        """The path of the sandbox that a page leads to."""
        found = re.search(r"/[\w-]{32}(?=/(?:map|card|site)/)", page.text)
        assert found
        return found[0]


@contextmanager
def visiting(folder: Path, plan: str | None = None, enters: bool = True) -> Iterator[Visitor]:
    """Serve a folder, and visit it; all has ended when this ends."""
    with opened(folder, plan) as (server, link, _):
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            visitor = Visitor(folder, link)
            if enters:
                assert visitor.enter().status == 303
            yield visitor
        finally:
            server.should_exit = True
            thread.join()
