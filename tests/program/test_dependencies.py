"""The pages on dependencies name what the build links and what the bootstrap installs, and nothing else."""
import re
import subprocess

import pytest
from conftest import BINARY, ROOT

LIBRARIES = {"libsndfile": "libsndfile", "libfmt": "fmt", "libyaml-cpp": "yaml-cpp", "libtorch": "libtorch", "libtorch_cpu": "libtorch",
             "libtorch_cuda": "libtorch", "libc10": "libtorch", "libc10_cuda": "libtorch", "libcublasLt": "CUDA",
             "libcpp-httplib": "cpp-httplib"}
SYSTEM = {"libstdc++", "libm", "libgcc_s", "libc", "ld-linux-x86-64", "libpthread", "libdl", "librt", "ld-linux-aarch64", "libgomp"}
PACKAGES = {"libcli11-dev": "CLI11", "libyaml-cpp-dev": "yaml-cpp", "libfmt-dev": "fmt", "nlohmann-json3-dev": "nlohmann-json",
            "libsndfile1-dev": "libsndfile", "libcpp-httplib-dev": "cpp-httplib", "torch": "libtorch"}
NOT_INSTALLED = {"CUDA", "lodepng", "utf8proc"}  # the user's own, and source of ours


def rows(language):
    """Name to (version, licence) of the page's tables."""
    lines = re.sub("</?span[^>]*>", "", (ROOT / "docs" / language / "dependencies.md").read_text(encoding="utf-8")).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return {row[0].strip("`"): (row[1], row[2]) for row in cells}


def installed_by_the_bootstrap():
    text = (ROOT / "tools" / "bootstrap").read_text()
    packages = re.findall(r"^\w*packages=\(([^)]*)\)", text, re.MULTILINE)
    return {PACKAGES.get(name, name) for group in packages for name in group.split()}


def required_by_python():
    lines = [line for file in (ROOT / "tools").glob("requirements*.txt") for line in file.read_text().splitlines()]
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_linked_library_has_a_row():
    needed = subprocess.run(["readelf", "-d", BINARY], capture_output=True, text=True, check=True).stdout
    names = {name.split(".so")[0] for name in re.findall(r"\(NEEDED\).*\[(.*)\]", needed)}
    assert "libfmt" in names
    for name in names - SYSTEM:
        assert LIBRARIES[name] in rows("en"), f"{name} is linked and has no row"


def test_what_is_vendored_has_a_row_with_its_version():
    vendored = {path.name for path in (ROOT / "third_party").iterdir() if path.is_dir()}
    assert vendored == {"lodepng", "utf8proc"}
    readme = (ROOT / "third_party" / "README.md").read_text()
    for name in vendored:
        assert f"| {name} | {rows('en')[name][0]}" in readme


def test_what_is_installed_has_a_row_and_every_row_is_used():
    python = required_by_python()
    wanted = installed_by_the_bootstrap() | {PACKAGES.get(name, name) for name in python}
    assert set(rows("en")) - NOT_INSTALLED == wanted
    for name, version in python.items():
        assert version.rsplit(".", 1)[0] in rows("en")[PACKAGES.get(name, name)][0], f"{name} {version}"


@pytest.mark.parametrize("column", [0, 1])
def test_both_languages_have_the_same_versions_and_licences(column):
    english, persian = rows("en"), rows("fa")
    assert {name: row[column] for name, row in english.items()} == {name: row[column] for name, row in persian.items()}


def test_no_licence_forbids_it():
    for name, (_, licence) in rows("en").items():
        assert not licence.startswith("GPL") or name in {"espeak-ng", "g++", "make", "ccache", "pkg-config", "git", "sox", "codespell"}, f"{name} would bind what links it"
