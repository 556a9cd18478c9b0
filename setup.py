"""What pyproject.toml cannot say: a wheel has the trained parts of artifacts/, too."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithArtifacts(build_py):
    """A checkout (editable) finds them beside the package; an installed package, inside it."""

    def run(self):
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "rag_repro" / "artifacts"
            shutil.copytree(Path(__file__).parent / "artifacts", target, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithArtifacts})
