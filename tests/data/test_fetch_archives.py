"""Archives that try to write elsewhere, or are damaged."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_repro.data.download import FetchError
from rag_repro.data.fetch import unpack

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


def refused(archive, out, *parts, members=None):
    with pytest.raises(FetchError) as caught:
        unpack(archive, members or {"dev.json": out / "set" / "dev.json"})
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


def test_tgz_is_a_name_too(tmp_path, out):
    unpack(tarred(tmp_path, ("./dev.json", TEXT), name="a.tgz"), {"dev.json": out / "dev.json"})
    assert (out / "dev.json").read_bytes() == TEXT


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


def test_a_link_that_lies_where_the_temporary_file_goes_is_not_followed(tmp_path, out):
    """Nothing is written through what is in the data folder: files are renamed into place."""
    (tmp_path / "victim").write_text("victim")
    (out / "dev.json").symlink_to(tmp_path / "victim")
    unpack(zipped(tmp_path, ("dev.json", TEXT)), {"dev.json": out / "dev.json"})
    assert (tmp_path / "victim").read_text() == "victim"
    assert not (out / "dev.json").is_symlink()


@PACK
def test_two_that_could_be_meant(pack, tmp_path, out):
    archive = pack(tmp_path, ("dev.json", TEXT), ("a/dev.json", b"other"))
    refused(archive, out, "'dev.json'", "'a/dev.json'", "could be")


# ----------------------------------------------------------------------------- damage


def test_a_zip_that_lies_about_its_size(tmp_path, out):
    """It says 10 bytes and holds 5 MB: never more than it says, and that is damaged."""
    archive = zipped(tmp_path, ("dev.json", b"0" * 5_000_000))
    true, false = (5_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")
    archive.write_bytes(archive.read_bytes().replace(true, false))
    refused(archive, out, "damaged")


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
    with pytest.raises(FetchError, match=r"none.zip cannot be unpacked"):
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
    except FetchError as error:
        said = str(error)
    if said is None:
        assert everything(out) == ["data/dev.json"]
        assert target.read_bytes() == TEXT
        target.unlink()
    else:
        assert str(archive) in said
        assert everything(out) == []
