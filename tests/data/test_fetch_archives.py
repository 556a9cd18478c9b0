"""Archives that try to write elsewhere, to fill the disk, or are damaged."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zipfile
from collections import namedtuple
from contextlib import nullcontext
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_repro.data import archives
from rag_repro.data.archives import ArchiveError, unpack

TEXT = b'{"questions": 2}\n' * 50


def zipped(folder, *entries, name="release.zip", mode=None, compression=zipfile.ZIP_DEFLATED):
    path = folder / name
    with zipfile.ZipFile(path, "w", compression) as made:
        for entry, content in entries:
            info = zipfile.ZipInfo(entry)
            info.compress_type = compression
            if mode:
                info.external_attr = mode << 16
            made.writestr(info, content)
    return path


def tarred(folder, *entries, name="release.tar.gz"):
    """entries: (name, content) or a TarInfo without content."""
    path = folder / name
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as made:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                made.addfile(entry)
            else:
                info = tarfile.TarInfo(entry[0])
                info.size = len(entry[1])
                made.addfile(info, io.BytesIO(entry[1]))
    return path


def special(name, kind, goal="", **more):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, goal
    for field, value in more.items():
        setattr(info, field, value)
    return info


PACK = pytest.mark.parametrize("pack", [zipped, tarred])


@pytest.fixture
def out(tmp_path):
    """A folder in a folder, so that what escapes is seen."""
    folder = tmp_path / "outer" / "data"
    folder.mkdir(parents=True)
    (folder / "mine.json").write_text("mine")
    return folder


def everything(out):
    """All files under the outer folder, as relative paths."""
    outer = out.parent
    return sorted(str(p.relative_to(outer)) for p in outer.rglob("*") if not p.is_dir())


def refused(archive, out, *parts, members=None, **limits):
    with pytest.raises(ArchiveError) as caught:
        unpack(archive, members or {"dev.json": out / "set" / "dev.json"}, **limits)
    for part in (str(archive), *parts):
        assert part in str(caught.value)
    assert everything(out) == ["data/mine.json"]
    return str(caught.value)


# ---------------------------------------------------------------------- the good case


@PACK
def test_named_members_and_no_others(pack, tmp_path, out):
    archive = pack(
        tmp_path,
        ("release/", b"") if pack is zipped else special("release", tarfile.DIRTYPE),
        ("release/dev.json", TEXT),
        ("release/train.json", b"much"),
        ("__MACOSX/release/._dev.json", b"junk"),
        ("release/sub/deep.json", b"deep"),
    )
    members = {"dev.json": out / "set" / "dev.json", "sub/deep.json": out / "deep.json"}
    unpack(archive, members)
    assert (out / "set" / "dev.json").read_bytes() == TEXT
    assert (out / "deep.json").read_bytes() == b"deep"
    assert everything(out) == ["data/deep.json", "data/mine.json", "data/set/dev.json"]
    assert sorted(p.name for p in out.iterdir()) == ["deep.json", "mine.json", "set"]


def test_tgz_is_a_name_too_and_others_are_not(tmp_path, out):
    unpack(tarred(tmp_path, ("./dev.json", TEXT), name="a.tgz"), {"dev.json": out / "dev.json"})
    assert (out / "dev.json").read_bytes() == TEXT
    (out / "dev.json").unlink()
    refused(zipped(tmp_path, ("dev.json", TEXT), name="a.rar"), out, "neither .zip nor .tar.gz")


@PACK
def test_a_file_that_is_there_is_replaced_whole(pack, tmp_path, out):
    unpack(pack(tmp_path, ("dev.json", TEXT)), {"dev.json": out / "mine.json"})
    assert (out / "mine.json").read_bytes() == TEXT


@PACK
def test_a_member_that_is_missing_is_named_and_none_is_written(pack, tmp_path, out):
    members = {"dev.json": out / "dev.json", "test.json": out / "test.json"}
    archive = pack(tmp_path, ("dev.json", TEXT), ("my_test.json", b""))
    refused(archive, out, "there is no 'test.json'", members=members)


# ----------------------------------------------------------------------- ways outside


@PACK
@pytest.mark.parametrize(
    "name",
    [
        *("../dev.json", "a/../../dev.json", "/dev.json", "//host/dev.json", "a/.."),
        *("..\\dev.json", "a\\..\\..\\dev.json", "C:\\dev.json", "c:dev.json", "\\\\h\\dev.json"),
        *("a\x01/dev.json", "a\n/dev.json"),
    ],
)
@pytest.mark.parametrize("wanted", [True, False])
def test_names_that_lead_outside(pack, tmp_path, out, name, wanted):
    """Also where nobody asks for the entry: such an archive is not what it should be."""
    others = () if wanted else (("dev.json", TEXT),)
    refused(pack(tmp_path, *others, (name, TEXT)), out, "outside")


def test_a_name_with_a_nul_in_a_zip(tmp_path, out):
    archive = zipped(tmp_path, ("dev.jsonX.exe", TEXT))
    archive.write_bytes(archive.read_bytes().replace(b"dev.jsonX.exe", b"dev.json\0.exe"))
    refused(archive, out)


@pytest.mark.parametrize(
    "entry",
    [
        special("dev.json", tarfile.SYMTYPE, "/etc/passwd"),
        special("dev.json", tarfile.SYMTYPE, "../../../etc/passwd"),
        special("dev.json", tarfile.SYMTYPE, "other.json"),
        special("dev.json", tarfile.LNKTYPE, "/etc/passwd"),
        special("dev.json", tarfile.LNKTYPE, "../mine.json"),
        special("dev.json", tarfile.LNKTYPE, "other.json"),
        special("dev.json", tarfile.CHRTYPE, devmajor=1, devminor=3),
        special("dev.json", tarfile.BLKTYPE),
        special("dev.json", tarfile.FIFOTYPE),
        special("dev.json", tarfile.DIRTYPE),
    ],
    ids=lambda e: f"{e.type!r} {e.linkname}",
)
def test_a_member_of_a_tar_that_is_no_file(tmp_path, out, entry):
    refused(tarred(tmp_path, ("other.json", TEXT), entry), out)


@pytest.mark.parametrize(
    "entry",
    [
        special("out", tarfile.SYMTYPE, "/var"),
        special("out", tarfile.SYMTYPE, ".."),
        special("null", tarfile.CHRTYPE, devmajor=1, devminor=3),
    ],
    ids=lambda e: e.name + e.linkname,
)
def test_links_outside_and_devices_spoil_the_whole_tar(tmp_path, out, entry):
    refused(tarred(tmp_path, entry, ("out/dev.json", TEXT)), out)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFDIR])
def test_a_member_of_a_zip_that_is_no_file(tmp_path, out, kind):
    archive = zipped(tmp_path, ("dev.json", b"/etc/passwd"), mode=kind | 0o777)
    refused(archive, out, "is no file but a link")


def test_a_link_that_lies_where_the_temporary_file_goes_is_not_followed(tmp_path, out):
    """Nothing is written through what is in the data folder: files are renamed into place."""
    (tmp_path / "victim").write_text("victim")
    (out / "dev.json").symlink_to(tmp_path / "victim")
    unpack(zipped(tmp_path, ("dev.json", TEXT)), {"dev.json": out / "dev.json"})
    assert (tmp_path / "victim").read_text() == "victim"
    assert not (out / "dev.json").is_symlink()


@PACK
@pytest.mark.parametrize("second", ["dev.json", "DEV.json", "a/dev.json", "a/Dev.JSON"])
def test_two_that_could_be_meant(pack, tmp_path, out, second):
    warns = pytest.warns(UserWarning, match="Duplicate name")
    with warns if (pack, second) == (zipped, "dev.json") else nullcontext():
        archive = pack(tmp_path, ("dev.json", TEXT), (second, b"other"))
    refused(archive, out, "'dev.json'", repr(second), "could be")


# ----------------------------------------------------------------------------- bombs


@PACK
def test_more_than_the_limit(pack, tmp_path, out):
    archive = pack(tmp_path, ("dev.json", b"0" * 5_000_000))
    assert archive.stat().st_size < 10_000
    refused(archive, out, "'dev.json' unpacks to more than 1,000,000 bytes", limit=1_000_000)
    unpack(archive, {"dev.json": out / "dev.json"}, limit=5_000_000)


@PACK
def test_the_limit_is_for_all_members_together(pack, tmp_path, out):
    archive = pack(tmp_path, *((f"{x}.json", b"0" * 600_000) for x in "ab"))
    members = {f"{x}.json": out / f"{x}.json" for x in "ab"}
    refused(archive, out, "'b.json'", members=members, limit=1_000_000)


def test_the_default_limit_is_a_multiple_of_the_archive(tmp_path, out, monkeypatch):
    monkeypatch.setattr(archives, "FLOOR", 1000)
    archive = zipped(tmp_path, ("dev.json", b"0" * 1_000_000))
    limit = archives.RATIO * archive.stat().st_size
    assert limit < 1_000_000
    refused(archive, out, f"{limit:,} bytes")


def test_a_zip_that_lies_about_its_size(tmp_path, out):
    """It says 10 bytes and holds 5 MB: never more than it says, and that is damaged."""
    archive = zipped(tmp_path, ("dev.json", b"0" * 5_000_000))
    true, false = (5_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")
    archive.write_bytes(archive.read_bytes().replace(true, false))
    refused(archive, out, "damaged", limit=1_000_000)


def test_a_size_that_is_too_large_is_refused_before_a_byte_is_read(tmp_path, out, monkeypatch):
    archive = zipped(tmp_path, ("dev.json", b"0" * 5_000_000))
    plain = archives._zip_entries
    opened = []

    def watched(path):
        for entry in plain(path):
            yield replace(entry, open=lambda: opened.append(1) or io.BytesIO(b""))

    monkeypatch.setattr(archives, "_zip_entries", watched)
    refused(archive, out, "unpacks to more than", limit=1_000_000)
    assert opened == []


def test_bytes_are_counted_not_believed(tmp_path, out, monkeypatch):
    """Should a library ever hand out more than an entry's size."""
    archive = zipped(tmp_path, ("dev.json", TEXT))
    plain = archives._zip_entries

    def lying(path):
        for entry in plain(path):
            yield replace(entry, open=lambda: io.BytesIO(b"0" * 5_000_000))

    monkeypatch.setattr(archives, "_zip_entries", lying)
    refused(archive, out, "unpacks to more than", limit=1_000_000)


def test_a_tar_of_what_nobody_asked_for(tmp_path, out):
    big = 40 * 2**20
    archive = tarred(tmp_path, ("junk.bin", bytes(big)), ("dev.json", TEXT))
    refused(archive, out, "all entries together", limit=1_000_000)


def test_a_tar_with_a_header_that_would_fill_the_memory(tmp_path, out):
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 2**33
    path = tmp_path / "release.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(4096)))
    refused(path, out, "a header of 8,589,934,592 bytes", limit=2**40)


def odd_tar(folder, *headers):
    path = folder / "release.tar.gz"
    path.write_bytes(gzip.compress(b"".join(headers) + bytes(4096)))
    return path


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
@pytest.mark.parametrize("size", [-1, -512, -(2**40)])
def test_a_negative_size(tmp_path, out, kind, size):
    head = bytearray(special("dev.json", kind).tobuf(tarfile.GNU_FORMAT))
    head[124:136] = b"\xff" + size.to_bytes(11, "big", signed=True)
    head[148:156] = b"%06o\0 " % tarfile.calc_chksums(head[:512])[0]
    refused(odd_tar(tmp_path, bytes(head)), out, "; delete it")


def test_a_negative_size_by_a_pax_header(tmp_path, out):
    info = special("dev.json", tarfile.REGTYPE, pax_headers={"size": "-1024"})
    refused(odd_tar(tmp_path, info.tobuf(tarfile.PAX_FORMAT)), out, "; delete it")


def test_a_map_of_holes_without_an_end(tmp_path, out):
    more = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "10"}
    info = special("dev.json", tarfile.REGTYPE, pax_headers=more)
    info.size = 512
    archive = odd_tar(tmp_path, info.tobuf(tarfile.PAX_FORMAT), b"9999999\n".ljust(512, b"1"))
    refused(archive, out, "; delete it")


@PACK
@pytest.mark.parametrize("name", ["\x1b[2J.json", "a\nb.json", "n" * 5000, "\u202ea.json"])
def test_a_name_that_no_file_can_have(pack, tmp_path, out, name):
    said = refused(pack(tmp_path, (name, b"")), out, "has a name that no file can have")
    assert said.isprintable()
    assert len(said) < 600


@PACK
def test_too_many_entries(pack, tmp_path, out, monkeypatch):
    monkeypatch.setattr(archives, "_MOST_ENTRIES", 5)
    archive = pack(tmp_path, *((f"{i}.json", b"") for i in range(6)))
    refused(archive, out, "more than 5 entries")


@PACK
def test_no_room(pack, tmp_path, out, monkeypatch):
    usage = namedtuple("usage", "total used free")(9, 9, 20)
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda folder: usage)
    refused(pack(tmp_path, ("dev.json", TEXT)), out, f"needs {len(TEXT)} bytes, 20 are free")


# ----------------------------------------------------------------------------- damage


@PACK
@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.9])
def test_a_cut_off_archive(pack, tmp_path, out, keep):
    archive = pack(tmp_path, ("dev.json", os.urandom(5000)))
    whole = archive.read_bytes()
    archive.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    refused(archive, out)


@PACK
def test_what_is_no_archive(pack, tmp_path, out):
    archive = pack(tmp_path)
    archive.write_bytes(b"<html>please log in</html>" * 100)
    refused(archive, out, "damaged")


def test_a_zip_with_a_password(tmp_path, out):
    archive = zipped(tmp_path, ("dev.json", TEXT))
    content = bytearray(archive.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\1\2") + 8] |= 1
    archive.write_bytes(content)
    refused(archive, out, "password")


def test_an_unknown_compression(tmp_path, out):
    archive = zipped(tmp_path, ("dev.json", TEXT))
    content = bytearray(archive.read_bytes())
    content[8] = content[content.index(b"PK\1\2") + 10] = 97
    archive.write_bytes(content)
    refused(archive, out, "compression")


def test_an_archive_that_is_not_there(tmp_path, out):
    with pytest.raises(ArchiveError, match=r"none.zip cannot be unpacked"):
        unpack(tmp_path / "none.zip", {"dev.json": out / "dev.json"})


def _flips():
    return st.lists(st.tuples(st.integers(0, 2**16), st.integers(1, 255)), min_size=1, max_size=4)


@PACK
@given(flips=_flips())
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_damage_is_an_error_with_a_name_or_does_no_harm(pack, tmp_path, flips):
    """Never a stranger's error, never other bytes under the name, never a file elsewhere."""
    out = tmp_path / "outer" / "data"
    out.mkdir(parents=True, exist_ok=True)
    archive = pack(tmp_path, ("a/dev.json", TEXT), ("b.json", b"b"))
    content = bytearray(archive.read_bytes())
    for place, change in flips:
        content[place % len(content)] ^= change
    archive.write_bytes(content)
    target = out / "dev.json"
    said = None
    try:
        unpack(archive, {"dev.json": target})
    except ArchiveError as error:
        said = str(error)
    if said is None:
        assert everything(out) == ["data/dev.json"]
        assert target.read_bytes() == TEXT
        target.unlink()
    else:
        assert str(archive) in said
        assert everything(out) == []
