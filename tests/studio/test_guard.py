"""Who may speak to the studio, and what it gives: one browser, its own pages, and nothing outside the folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests import everyday
from tests.studio.visitor import Visitor, visiting

STEPS = ("table", "columns", "protected", "accuracy", "review", "release", "explore", "publish")
PRIVATE = "home,work\nSECRET-1,SECRET-2\n"


def test_the_link_works_once_and_its_cookie_is_out_of_reach_of_scripts_other_sites_and_other_ports(
    tmp_path: Path,
) -> None:
    with visiting(tmp_path, enters=False) as visitor:
        assert visitor.host.startswith("127.0.0.1:")
        assert visitor.ask("GET", "/").status == 403
        assert visitor.ask("GET", "/?token=wrong").status == 403
        page = visitor.enter()
        cookie = page.headers["set-cookie"].lower()
        assert page.status == 303 and "httponly" in cookie and "samesite=strict" in cookie
        assert f"path={page.headers['location'].lower()}" in cookie  # which nobody can guess
        assert visitor.see("table").status == 200
        second = Visitor(tmp_path, visitor.link)
        assert second.enter().status == 403 and second.cookie == ""
        assert second.ask("GET", f"{visitor.room}/table").status == 403
        assert second.ask("GET", f"{visitor.room}/table", Cookie="treetop-studio=guess").status == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", ""])
def test_another_host_is_refused_whatever_it_resolves_to(visitor: Visitor, host: str) -> None:
    assert visitor.ask("GET", "table", Host=host).status == 421


FOREIGN = [
    {},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "OWN", "Sec_Fetch_Site": "cross-site"},
    {"Origin": "OWN", "Sec_Fetch_Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize("path", ["table", "release", "upload", "open", "look"])
def test_a_form_from_elsewhere_is_refused_and_changes_nothing(
    visitor: Visitor, headers: dict[str, str], path: str
) -> None:
    told = {name: value.replace("OWN", f"http://{visitor.host}") for name, value in headers.items()}
    before = sorted(visitor.folder.iterdir())
    form = "do=choose&table=trips.csv&plan=evil.toml"
    page = visitor.ask("POST", path, form, Content_Type="application/x-www-form-urlencoded", **told)
    assert page.status == 403 and sorted(visitor.folder.iterdir()) == before


def test_pages_of_other_sites_cannot_embed_or_load_anything(visitor: Visitor) -> None:
    for site in ("cross-site", "same-site"):
        assert visitor.ask("GET", "table", Sec_Fetch_Site=site).status == 403
    assert visitor.ask("PUT", "table").status == 405
    assert visitor.ask("OPTIONS", "table").status == 405
    assert "access-control-allow-origin" not in visitor.see("table").headers


def test_every_answer_has_a_strict_policy_and_no_page_has_anything_that_needs_more(own: Visitor) -> None:
    for step in STEPS:
        page = own.see(step)
        assert page.status == 200, step
        assert not re.search(r"<script(?! src=)|<style|\sstyle=|\son\w+=|javascript:", page.text), step
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', page.text), step
    for page in (*own.pages, own.see("nothing"), own.ask("GET", "/"), own.ask("GET", "table", Host="evil")):
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert page.headers["x-content-type-options"] == "nosniff" and page.headers["cache-control"] == "no-store"


def test_an_upload_that_is_broken_or_no_table_leaves_nothing(visitor: Visitor) -> None:
    before = sorted(visitor.folder.iterdir())
    kind, origin = "multipart/form-data; boundary=xyz", f"http://{visitor.host}"
    head = '--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    empty = '--xyz\r\nContent-Disposition: form-data; name="file"; filename=""\r\n\r\n\r\n--xyz--\r\n'
    cases = [(body, "not whole") for body in (head, f"{head}a,b\r\n", "no parts", "", f"{head}a\r\n--xyz\r\n")]
    for body, said in [*cases, (empty, "No file was chosen")]:
        page = visitor.ask("POST", "upload", body.encode(), Content_Type=kind, Origin=origin)
        assert page.status == 422 and said in page.plain, (body, page.plain)
    assert "no upload" in visitor.ask("POST", "upload", "x", Content_Type="text/plain", Origin=origin).plain
    assert "no table that can be read" in visitor.upload("evil.html", "<script>").plain
    assert visitor.ask("POST", "table", "a=b", Content_Type="text/plain", Origin=origin).status == 415
    long = "a=" + "b" * (1 << 20)
    form = "application/x-www-form-urlencoded"
    assert visitor.ask("POST", "table", long, Content_Type=form, Origin=origin).status == 413
    assert sorted(visitor.folder.iterdir()) == before


@pytest.fixture
def beside(own: Visitor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside, with a table and a site, to which a link leads from inside."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "private.csv").write_text(PRIVATE)
    for name in ("index.html", "card.html"):
        (outside / name).write_text("<p>SECRET-3</p>")
    (own.folder / "link.csv").symlink_to(outside / "private.csv")
    (own.folder / "linked").symlink_to(outside)
    return outside


def test_nothing_outside_the_folder_is_listed_read_or_written(own: Visitor, beside: Path) -> None:
    assert "link" not in own.see("table").plain
    up = os.path.relpath(beside / "private.csv", own.folder)
    for name in ("link.csv", "linked/private.csv", up, str(beside / "private.csv"), "a/../../x.csv", "\0", "."):
        page = own.send("table", do="choose", table=name, plan="other.toml")
        assert page.status == 422 and "is not below" in page.plain, name
    for name in ("../evil.toml", "linked/evil.toml", "/tmp/evil.toml", "..", ".hidden.toml", "a\\b.toml"):
        assert own.send("table", do="choose", table="trips.csv", plan=name).status == 422, name
    for name in ("../evil.csv", "..\\evil.csv", "linked/evil.csv"):
        assert own.upload(name, PRIVATE).status in (200, 422)
    (own.folder / "evil.csv").unlink()  # the name alone was taken
    page = own.send("columns", do="attribute", attribute="origin", how="hierarchy", file=up)
    assert page.status == 422 and "is not below" in page.plain
    for name in (f"../{beside.name}", "linked/x", "..", "a/b"):
        assert own.send("release", do="release", out=name, charge="no").status == 422, name
    assert sorted(one.name for one in beside.iterdir()) == ["card.html", "index.html", "private.csv"]
    assert not any("SECRET" in page.text for page in own.pages)


def test_the_shelf_holds_only_pages_of_releases_and_sites_below_the_folder(own: Visitor, beside: Path) -> None:
    assert own.send("release", do="release", out="release", charge="no").status == 200
    assert "Released" in own.wait().plain
    own.send("publish", release="release", out="site", language="en")
    shelf = own.shown(own.see("publish"))
    page = own.ask("GET", f"{shelf}/site/site/index.html", Sec_Fetch_Site="cross-site", Cookie="none=1")
    policy = page.headers["content-security-policy"]
    assert page.status == 200 and policy.startswith("sandbox allow-scripts") and "allow-same-origin" not in policy
    assert own.ask("GET", f"{shelf}/card/release").status == 200
    assert own.ask("GET", f"{shelf}/site/site/counts.csv").headers["content-disposition"].startswith("attachment")
    up = os.path.relpath(beside, own.folder)
    refused = ["site/trips.csv", "site/plan.toml", "site/site/../trips.csv", "site/linked/index.html", "card/.."]
    refused += [f"site/{up}/index.html", f"site/{up.replace('/', '%2f')}%2findex.html", "site/..%2ftrips.csv"]
    refused += ["site/site/%2e%2e/trips.csv", "card/linked", f"card/{beside}", "map/..%2f..", "site/release/card.json"]
    for path in refused:
        assert own.ask("GET", f"{shelf}/{path}").status == 404, path
    assert own.ask("POST", f"{shelf}/site/site/index.html", Origin=f"http://{own.host}").status == 405
    assert own.ask("GET", f"{shelf[:-1]}x/card/release", Cookie="none=1").status == 403
    assert not any("SECRET" in page.text for page in own.pages)


def test_nothing_private_is_printed_or_logged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    everyday.write(tmp_path)
    (tmp_path / "plan.toml").unlink()
    with (tmp_path / "trips.csv").open("a") as table:
        table.write("SECRET-1,n1\n")
    with visiting(tmp_path) as visitor:
        visitor.send("table", do="choose", table="trips.csv")
        visitor.send("columns", do="attribute", attribute="origin", how="hierarchy", file="places.csv")
        assert "SECRET-1" in visitor.see("columns").text  # the steward sees it
        visitor.send("protected", entity="trip", contributions="1", neighbours="replace")
        visitor.send("accuracy", epsilon="1", delta="1e-8", by="epsilon")
        visitor.send("release", do="release", out="release", charge="no")
        assert "SECRET-1" in visitor.wait().plain  # the code stops it, and is named
        visitor.send("columns", do="unknown", unknown="drop")
        visitor.send("release", do="release", out="release", charge="no", allow_dropped="on")
        assert "Released" in (page := visitor.wait()).plain and "1 of 601" in page.plain
        visitor.ask("GET", "nothing?code=SECRET-1")
    assert capfd.readouterr() == ("", "")
    kept = b"".join(one.read_bytes() for one in tmp_path.rglob("*") if one.is_file() and one.name != "trips.csv")
    assert b"SECRET-1" not in kept
