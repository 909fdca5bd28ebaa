"""The studio as a web application: the pages by address, and the handling of forms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, TypeVar
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp

from treetop.addons.site import SITE
from treetop.addons.studio import rendering
from treetop.addons.studio.background import Stopped, Work
from treetop.addons.studio.folder import is_site
from treetop.addons.studio.forms import Form, Upload, read_form
from treetop.addons.studio.guard import Guard
from treetop.addons.studio.plan_state import Stale, write
from treetop.addons.studio.steps import accuracy, columns, explore, protected, publish, release, review, table
from treetop.addons.studio.wording import STEPS as NAMES
from treetop.addons.studio.wording import in_page_words
from treetop.addons.studio.workspace import NoPlan, Workspace
from treetop.errors import TreetopError, visible
from treetop.release.folder import PAGE as CARD_PAGE

STEPS: Mapping[str, ModuleType] = {
    "table": table,
    "columns": columns,
    "protected": protected,
    "accuracy": accuracy,
    "review": review,
    "release": release,
    "explore": explore,
    "publish": publish,
}
_PLAIN = {"card.html", "index.html", "map.html"}
_PIECE = 1 << 16
_HIDDEN = ("seen", "do", "attribute")
_LONG = 1.5
"""Seconds after which work goes on in the background, and a page says so."""
_WORKS = 8
"""Most pieces of work whose results are kept to be fetched."""
T = TypeVar("T")


def make_app(workspace: Workspace, hosts: tuple[str, ...]) -> ASGIApp:
    """Return the application for a workspace, reached by these hosts only."""
    room, shelf = workspace.keys.room, workspace.keys.shelf
    pages = _Pages(workspace)
    routes = [
        Route(f"{room}/", pages.home),
        Route(f"{room}/studio.css", lambda _: Response(rendering.style(), media_type="text/css")),
        Route(f"{room}/studio.js", lambda _: Response(rendering.script(), media_type="text/javascript")),
        Route(f"{room}/icon.svg", lambda _: Response(rendering.ICON, media_type="image/svg+xml")),
        Route(f"{room}/upload", pages.upload, methods=["POST"]),
        Route(f"{room}/matched", pages.matched, methods=["POST"]),
        Route(f"{room}/look", pages.look, methods=["POST"]),
        Route(f"{room}/example", pages.example, methods=["POST"]),
        Route(f"{room}/progress", pages.progress),
        Route(f"{room}/download", pages.download),
        Route(f"{room}/open", pages.open_plan, methods=["POST"]),
        Route(f"{room}/again", pages.again, methods=["POST"]),
        Route(f"{room}/working", pages.working, methods=["GET", "POST"]),
        Route(f"{room}/{{step}}", pages.step, methods=["GET", "POST"]),
        Route(f"{shelf}/map/{{name:path}}", pages.shown_map),
        Route(f"{shelf}/card/{{name:path}}", pages.shown_card),
        Route(f"{shelf}/site/{{name:path}}", pages.shown_site),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _nowhere, 500: _broken})
    return Guard(app, workspace.keys, hosts)


async def _nowhere(_: Request, __: Exception) -> Response:
    return PlainTextResponse("There is no such page in the studio.\n", 404)


async def _broken(_: Request, problem: Exception) -> Response:
    # What it says may hold something private: its kind is enough to report it.
    return PlainTextResponse(
        f"Something went wrong that should not: {type(problem).__name__}. Nothing was lost; please report it.\n", 500
    )


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.asked: dict[str, int] = {}
        self.works: dict[str, Work[Response]] = {}

    async def home(self, _: Request) -> Response:
        """Go to the first step that is not done."""
        done = await self._away(self._done)
        first = next((step for step in STEPS if not done.get(step)), "explore")
        return RedirectResponse(f"{self.workspace.keys.room}/{first}", 303)

    async def step(self, request: Request) -> Response:
        """Show a step, or handle its form."""
        name = request.path_params["step"]
        if name not in STEPS:
            return PlainTextResponse("There is no such page in the studio.\n", 404)
        if request.method == "POST":
            form = await _form(request)
            if isinstance(form, Response):
                return form
            return await self._worked(name, partial(self._act, name, form))
        return await self._worked(name, partial(self._show, name, Form(list(request.query_params.multi_items()))))

    async def _worked(self, step: str, act: Callable[[], Response]) -> Response:
        """Answer at once or, if it takes long, by a page that waits."""
        work = Work(step, act)
        if await work.wait(_LONG):
            return work.value()
        self.works = dict([*self.works.items()][-_WORKS:])
        self.workspace.works = [one for one in (*self.works.values(), work) if not one.done]
        self.works[name := token_urlsafe(8)] = work
        return RedirectResponse(f"{self.workspace.keys.room}/working?id={name}", 303)

    async def working(self, request: Request) -> Response:
        """Show what runs, stop it, or give its result."""
        work = self.works.get(name := request.query_params.get("id", ""))
        if work is None:
            return RedirectResponse(f"{self.workspace.keys.room}/", 303)
        if request.method == "POST":
            work.stop()
        if await work.wait(_LONG if request.method == "POST" else 0.3):
            if isinstance(work.problem, Stopped):
                return await self._away(self._stopped, work)
            return work.value()
        return await self._away(self._waiting, name, work)

    def _waiting(self, name: str, work: Work[Response]) -> Response:
        shown = self._common(work.what, None) | {"id": name, "work": work}
        return HTMLResponse(rendering.render("working.html", shown))

    def _stopped(self, work: Work[Response]) -> Response:
        return HTMLResponse(rendering.render("stopped.html", self._common(work.what, None)))

    def _act(self, name: str, form: Form) -> Response:
        module = STEPS[name]
        if not hasattr(module, "act"):
            return self._show(name, form)
        try:
            with self.workspace.lock:
                before = self._text()
                done = module.act(self.workspace, form)
                self.workspace.histories[self.workspace.plan_name].keep(before, self._text(), NAMES[name])
        except NoPlan as problem:
            return self._say(str(problem), "table")
        except TreetopError as problem:
            # What was typed stays; a plan that has changed is shown as it is now, and what was typed beside it.
            if isinstance(problem, Stale):
                return self._show(name, Form(), str(problem), 409, typed=form)
            return self._show(name, form, str(problem), 422)
        except (OSError, MemoryError) as problem:
            return self._show(name, form, _of_the_system(problem), 422)
        return self._say(done.said, done.to)

    def _text(self) -> str:
        return self.workspace.plan().text if self.workspace.has_plan else ""

    async def again(self, request: Request) -> Response:
        """Undo what was saved last, or do it again."""
        form = await _form(request)
        return form if isinstance(form, Response) else await self._away(self._again, form)

    def _again(self, form: Form) -> Response:
        way, to = form.get("way"), form.get("step") if form.get("step") in STEPS else "columns"
        try:
            with self.workspace.lock:
                plan, history = self.workspace.plan(), self.workspace.histories[self.workspace.plan_name]
                if form.get("seen") != plan.version:
                    raise Stale("The plan was changed since this page was shown: look at it again, and then undo")
                write(plan.path, history.go(way, plan.text))
        except TreetopError as problem:
            return self._say(str(problem), to)
        return self._say("Undone." if way == "undo" else "Done again.", to)

    def _say(self, text: str, to: str) -> Response:
        if text:
            self.workspace.notices = [*self.workspace.notices[-4:], text]
        return RedirectResponse(f"{self.workspace.keys.room}/{to}", 303)

    def _show(
        self, name: str, entered: Form, problem: str | None = None, status: int = 200, typed: Form | None = None
    ) -> Response:
        told = {"typed": [] if typed is None else [pair for pair in typed.pairs if pair[0] not in _HIDDEN and pair[1]]}
        try:
            values, page = STEPS[name].show(self.workspace, entered), f"{name}.html"
        except NoPlan as missing:
            return self._say(str(missing), "table")
        except (TreetopError, OSError, MemoryError) as trouble:
            said = str(trouble) if isinstance(trouble, TreetopError) else _of_the_system(trouble)
            values, page, problem, status = {}, "problem.html", problem or said, 422 if status == 200 else status
        return HTMLResponse(rendering.render(page, self._common(name, problem) | told | values), status)

    def _common(self, name: str, problem: str | None) -> dict[str, Any]:
        workspace = self.workspace
        said, workspace.notices = workspace.notices, []
        steps, text = list(NAMES), self._text()
        at = steps.index(name)
        return {
            "step": name,
            "title": NAMES[name],
            "steps": NAMES,
            "number": at + 1,
            "after": steps[at + 1] if at + 1 < len(steps) else None,
            "done": self._done(),
            "folder": workspace.folder.path.name or str(workspace.folder.path),
            "plan_name": workspace.plan_name,
            "has_plan": workspace.has_plan,
            "plans": [one.name for one in workspace.folder.files((".toml",))],
            "seen": workspace.plan().version if workspace.has_plan else "",
            "said": list(map(in_page_words, said)),
            "problem": None if problem is None else in_page_words(visible(problem)),
            "offered": workspace.histories[workspace.plan_name].offered(text) if text else {},
            "shelf": workspace.keys.shelf,
            "running": workspace.job is not None and workspace.job.state == "running",
        }

    def _done(self) -> dict[str, bool]:
        """Return which steps are done, as far as a quick look shows."""
        workspace = self.workspace
        if not workspace.has_plan:
            return {}
        try:
            plan = workspace.plan()
            attributes, unit, loss = (plan.get(name, default={}) for name in ("attributes", "unit", "loss"))
        except TreetopError:
            return {"table": True}
        other = plan.kind is not None  # whose questions are others, and answered in an editor
        answered = bool(unit) if other else all(key in unit for key in ("entity", "contributions", "neighbours"))
        has_loss = "epsilon" in loss or "rho" in loss
        releases = bool(workspace.folder.releases())
        return {
            "table": True,
            "columns": (bool(attributes) or other) and not plan.waiting,
            "protected": answered,
            "accuracy": has_loss,
            "review": releases,
            "release": releases,
            "explore": bool(workspace.folder.sites()),
            "publish": bool(workspace.folder.sites()),
        }

    async def upload(self, request: Request) -> Response:
        """Take a file into the folder."""
        try:
            upload = Upload(self.workspace.folder, request.headers.get("content-type", ""))
            path = await upload.save(request.stream())
        except (TreetopError, ClientDisconnect) as problem:
            text = str(problem) or "The upload was broken off: send the file again"
            return await self._away(self._show, "table", Form(), text, 422)
        return self._say(f"{path.name} is in the folder now.", "table")

    async def open_plan(self, request: Request) -> Response:
        """Look at another plan file of the folder."""
        form = await _form(request)
        if isinstance(form, Response):
            return form
        if form.get("plan") in [one.name for one in self.workspace.folder.files((".toml",))]:
            self.workspace.plan_name = form.get("plan")
        return RedirectResponse(f"{self.workspace.keys.room}/", 303)

    async def matched(self, request: Request) -> Response:
        """Count matching codes for the values of the form, saved or not."""
        return await self._part(
            request,
            "matched.html",
            lambda form: {"matched": columns.matched(self.workspace, self.workspace.plan(), form)},
        )

    async def look(self, request: Request) -> Response:
        """Show errors and the twin for the values of the form, saved or not."""
        return await self._part(
            request, "look.html", lambda form: {"look": accuracy.look(self.workspace, self.workspace.plan(), form)}
        )

    async def example(self, request: Request) -> Response:
        """Show the share of somebody with ten records, and what limits cost, for the values of the form."""
        return await self._part(request, "example.html", lambda form: protected.shown(self.workspace, form))

    async def _part(self, request: Request, name: str, make: Callable[[Form], dict[str, Any]]) -> Response:
        form = await _form(request)
        if isinstance(form, Response):
            return form

        self.asked[name] = turn = self.asked.get(name, 0) + 1

        def made() -> Response:
            try:
                with self.workspace.lock:
                    if turn != self.asked[name]:  # while it waited another was asked, and that one counts
                        return Response(status_code=204)
                    return HTMLResponse(rendering.render(name, make(form)))
            except TreetopError as problem:
                half = name == "matched.html"  # which is asked while half of it is typed
                told = rendering.render("trouble.html", {"trouble": problem, "half": half})
                return HTMLResponse(told, 200 if half else 422)

        return await self._away(made)

    async def progress(self, _: Request) -> Response:
        """Report the progress of the release."""
        job = self.workspace.job
        return JSONResponse({"state": "none"} if job is None else release.progress(job))

    async def download(self, request: Request) -> Response:
        """Send a file that is made of a release."""
        asked = request.query_params
        room = TemporaryDirectory()
        try:
            path = await self._away(
                explore.download, self.workspace, asked.get("release", ""), asked.get("to", ""), Path(room.name)
            )
        except TreetopError as problem:
            room.cleanup()
            form = Form(list(asked.multi_items()))
            return await self._away(self._show, "explore", form, str(problem), 422)
        return self._file(path, room)

    async def shown_map(self, request: Request) -> Response:
        """Show the map of a release, in its sandbox."""
        try:
            page = await self._away(explore.find_map, self.workspace, request.path_params["name"])
        except TreetopError:
            page = None
        return PlainTextResponse("There is no map.\n", 404) if page is None else HTMLResponse(page)

    async def shown_card(self, request: Request) -> Response:
        """Show the card of a release, in its sandbox."""
        try:
            path = self.workspace.folder.find(
                self.workspace.folder.name_of(self.workspace.folder.release(request.path_params["name"]) / CARD_PAGE)
            )
        except TreetopError:
            return PlainTextResponse("There is no such card.\n", 404)
        return self._page(path)

    async def shown_site(self, request: Request) -> Response:
        """Show a page of a site, or send a file of it; refuse other files."""
        name, _, file = request.path_params["name"].rpartition("/")
        try:
            path = self.workspace.folder.find(f"{name}/{file}")
        except TreetopError:
            path = Path()
        if file not in SITE.files or not is_site(path.parent) or not path.is_file():
            return PlainTextResponse("There is no such page.\n", 404)
        return self._page(path) if file in _PLAIN else self._file(path)

    def _page(self, path: Path) -> Response:
        return HTMLResponse(path.read_bytes())

    def _file(self, path: Path, room: TemporaryDirectory[str] | None = None) -> Response:
        """Send a file to be saved, piece by piece; its temporary folder is removed afterwards."""

        async def pieces() -> AsyncIterator[bytes]:
            try:
                with path.open("rb") as stream:
                    while piece := await self._away(stream.read, _PIECE):
                        yield piece
            finally:
                if room is not None:
                    room.cleanup()

        headers = {"Content-Disposition": f'attachment; filename="{path.name}"'}
        return StreamingResponse(pieces(), media_type="application/octet-stream", headers=headers)

    async def _away(self, act: Callable[..., T], *arguments: Any) -> T:
        """Call a slow function in one of the studio's own threads."""
        return await asyncio.get_running_loop().run_in_executor(self.workspace.pool, partial(act, *arguments))


def _of_the_system(problem: OSError | MemoryError) -> str:
    """Return the message for an error of the system, as the command line does."""
    if isinstance(problem, MemoryError):
        return "There is not enough memory for this: close other programs, and try again"
    where = f"{problem.filename}: " if problem.filename else ""
    return f"{where}{problem.strerror or problem}"


async def _form(request: Request) -> Form | Response:
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return PlainTextResponse("The studio takes plain forms.\n", 415)
    try:
        return await read_form(request.stream())
    except (TreetopError, ValueError, ClientDisconnect) as problem:
        return PlainTextResponse(f"{problem}\n", 413)


def address(workspace: Workspace, host: str) -> str:
    """Return the link that opens the studio once."""
    return f"http://{host}/?token={quote(workspace.keys.token or '')}"
