"""A factory is looked for in the files of its module, and nothing of it is run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conrepair.formats.models.factory_names import factory_problem

STOP = "raise SystemExit('nothing is run')\n"


@pytest.mark.parametrize(
    "target",
    [
        "torchvision.models:resnet18",
        "keras.applications:MobileNetV2",
        "tensorflow.keras.applications:MobileNetV2",
        "torch.nn:Module.eval",
        "torch:zeros",
        "os.path:join",
        "builtins:print",
        "math:sin",
    ],
)
def test_what_is_installed(target: str, tmp_path: Path) -> None:
    assert factory_problem(target, [tmp_path]) == ""


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere:net", "there's no module nowhere"),
        ("torchvision.nowhere:net", "there's no module torchvision.nowhere"),
        ("torchvision.models:nothing", "module torchvision.models has no 'nothing'"),
        ("keras.applications:Nothing", "module keras.applications has no 'Nothing'"),
    ],
)
def test_what_isnt_there(target: str, words: str, tmp_path: Path) -> None:
    assert words in factory_problem(target, [tmp_path])


def test_modules_of_the_users_own(tmp_path: Path) -> None:
    package = tmp_path / "ownnets"
    package.mkdir()
    (package / "__init__.py").write_text(f"{STOP}from .small import *\nfrom .small import other as renamed\n")
    (package / "small.py").write_text(f"{STOP}def net():\n    hidden = 1\n\nif True:\n    tiny = net\n")
    (package / "damaged.py").write_text("def net(:")
    (package / "lazy.py").write_text("def __getattr__(name):\n    return print\n")
    for target in ("ownnets:net", "ownnets:renamed", "ownnets:tiny", "ownnets.small:net", "ownnets.lazy:anything"):
        assert factory_problem(target, [tmp_path]) == "", target
    assert factory_problem("ownnets.damaged:net", [tmp_path]) == "", "what imports it says what is wrong"
    assert "has no 'hidden'" in factory_problem("ownnets.small:hidden", [tmp_path])
    assert "has no 'gone'" in factory_problem("ownnets:gone", [tmp_path])
    assert "no module ownnets" in factory_problem("ownnets:net", [])
    assert not [name for name in sys.modules if name.startswith("ownnets")]
