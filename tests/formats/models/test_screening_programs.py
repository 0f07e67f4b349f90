"""Exported programs (.pt2) that hold code: each would leave a mark if any of it ran, and none is left."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pickle
import typing
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from conrepair.formats.models.admission import admitted  # noqa: E402
from conrepair.formats.models.identity import model_sha256  # noqa: E402
from conrepair.formats.models.model import Model  # noqa: E402
from conrepair.formats.models.outline import describe_unrun  # noqa: E402
from conrepair.formats.torch.load.exported_screening import is_operator  # noqa: E402
from conrepair.formats.torch.load.framework import FRAMEWORK  # noqa: E402
from conrepair.formats.torch.load.screened_expressions import is_guard, is_size  # noqa: E402
from conrepair.ground.runtime.errors import ModelLoadError  # noqa: E402

Program = dict[str, Any]


class _Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(11, 4)
        self.layer = torch.nn.Conv2d(3, 4, 3, 2, 1)

    def forward(self, x: Any, words: Any) -> Any:
        found = self.layer(x).flatten(2)
        halves = torch.nn.functional.interpolate(x, scale_factor=2.0)
        return {"a": found[:, :, :1] + self.table(words).sum((1, 2))[:, None, None], "b": halves}


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("programs") / "net.pt2"
    size = torch.export.Dim.AUTO
    shapes = {"x": {0: size, 2: size, 3: size}, "words": {0: size}}
    arguments = (torch.randn(4, 3, 16, 16), torch.zeros(4, 5, dtype=torch.int64))
    torch.export.save(torch.export.export(_Net(), arguments, dynamic_shapes=shapes), path)
    return path


def model(path: Path, **options: Any) -> Model:
    return Model("torch", str(path), model_sha256(path), **options)


def rewritten(source: Path, path: Path, change: Callable[[Program], Any]) -> Path:
    """The archive with another program in it."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename.endswith("models/model.json"):
                program = json.loads(content)
                change(program)
                content = json.dumps(program).encode()
            new.writestr(info.filename, content)
    return path


def first(value: Any, key: str) -> dict[str, Any]:
    """The first mapping that has a key with a text."""
    if isinstance(value, dict):
        if isinstance(value.get(key), str):
            return value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        if found := first(item, key):
            return found
    return {}


def put(key: str, text: str) -> Callable[[Program], None]:
    def change(program: Program) -> None:
        first(program["graph_module"], key)[key] = text

    return change


def guard(text: str) -> Callable[[Program], None]:
    return lambda program: program["guards_code"].insert(0, text)


def placeholder(text: str) -> Callable[[Program], None]:
    def change(program: Program) -> None:
        graph = program["graph_module"]["graph"]
        old = graph["inputs"][-1]["as_tensor"]["name"]
        graph["inputs"][-1]["as_tensor"]["name"] = text
        graph["tensor_values"][text] = graph["tensor_values"].pop(old)

    return change


def node(**fields: Any) -> Callable[[Program], None]:
    return lambda program: program["graph_module"]["graph"]["nodes"][0].update(fields)


def argument(**value: Any) -> Callable[[Program], None]:
    return lambda program: program["graph_module"]["graph"]["nodes"][0]["inputs"].insert(
        0, {"name": "", "arg": value, "kind": 1}
    )


def spec(text: str) -> Callable[[Program], None]:
    def change(program: Program) -> None:
        for entry in program["graph_module"]["module_call_graph"]:
            if entry.get("signature"):
                entry["signature"]["in_spec"] = text

    return change


RUN = "__import__('os').mkdir('MARK')"
LOOKUP = {
    "type": "collections.defaultdict",
    "context": json.dumps({"default_factory_module": "os", "default_factory_name": "mkdir", "dict_context": ["x"]}),
    "children_spec": [{"type": None, "context": None, "children_spec": []}],
}
ENUMERATION = {
    "type": "builtins.dict",
    "context": json.dumps([{"__enum__": True, "fqn": "antigravity:Flight", "name": "UP"}]),
    "children_spec": [{"type": None, "context": None, "children_spec": []}],
}
HOSTILE = {
    "a size": put("expr_str", RUN),
    "a size by attributes": put("expr_str", "().__class__.__base__.__subclasses__()"),
    "a size by a function": put("expr_str", f"Max(1, {RUN})"),
    "a size's name": put("expr_str", f'Symbol("{RUN}")'),
    "a size's setting": put("expr_str", f"Symbol('s1', integer={RUN})"),
    "a size by a comprehension": put("expr_str", f"[{RUN} for s1 in (1,)][0]"),
    "a size by a lambda": put("expr_str", f"(lambda: {RUN})()"),
    "a size that takes for ever": put("expr_str", "9**9**9**9"),
    "a size of powers of powers": put("expr_str", "((((9**64)**64)**64)**64)"),
    "a size of too many terms": put("expr_str", "(s0+s1+s2+s3+s4+s5+s6+s7+1)**64"),
    "a guard that takes for ever": guard("math.comb(10**8, 5*10**7) > 0"),
    "a range that is counted to": lambda program: program["range_constraints"].update(
        u99999999999={"min_val": 0, "max_val": 9}
    ),
    "a guard": guard(f"{RUN} is None"),
    "a guard that ends its text": guard("L[\"' , 1) or " + RUN.replace("'", "\\'") + ' #"].size()[0] == 1'),
    "a guard by attributes": guard("L['x'].__class__.__init__.__globals__ != 1"),
    "a placeholder": placeholder(f"words={RUN}"),
    "a node's name": node(name=f"a; {RUN}; b"),
    "an argument's name": put("forward_arg_names", RUN),
    "an operator of Python's": node(target="torch.serialization.os.mkdir"),
    "an operator that calls": node(target="_operator.call"),
    "an operator that loads a library": node(target="torch.ops.load_library.__call__"),
    "an operator that imports": node(target="torch.ops.import_module.__call__"),
    "an operator's attribute": node(target="torch.ops.higher_order.wrap.py_impl"),
    "a namespace's attribute": node(target="torch.ops.__getattribute__.__call__"),
    "a module's loader": node(target="math.__loader__"),
    "a function for an argument": argument(as_operator="torch.os.system"),
    "a function in a dictionary": argument(as_string_to_argument={"a": {"as_operator": "torch.os.system"}}),
    "a text for a number": argument(as_int=RUN),
    "a parameter's name": put("parameter_name", f'weight") or {RUN} or ("'),
    "a class among inputs": spec(json.dumps([1, LOOKUP])),
    "an enumeration among inputs": spec(json.dumps([1, ENUMERATION])),
}


def _set_arguments(program: Program) -> None:
    for entry in program["graph_module"]["module_call_graph"]:
        if entry.get("signature"):
            entry["signature"]["forward_arg_names"] = ["x", RUN]


HOSTILE["an argument's name"] = _set_arguments


@pytest.mark.parametrize("how", HOSTILE)
def test_code_in_a_program_is_found_and_not_run(
    how: str, ordinary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = rewritten(ordinary, tmp_path / "net.pt2", HOSTILE[how])
    for look in (FRAMEWORK.describe, FRAMEWORK.load, describe_unrun):
        with pytest.raises(ModelLoadError, match=r"holds code where its format has none.*--trust"):
            look(model(path))
    assert not Path("MARK").exists()


class _Marking:
    def __reduce__(self) -> Any:
        return os.mkdir, ("MARK",)


def added(name: str, content: bytes) -> Callable[[zipfile.ZipFile], None]:
    return lambda archive: archive.writestr(name, content)


def a_pickle() -> bytes:
    buffer = io.BytesIO()
    torch.save(_Marking(), buffer)
    return buffer.getvalue()


def config(kind: str, path: str) -> bytes:
    entry = {"path_name": path, "is_param": False, "use_pickle": True, "tensor_meta": None}
    return json.dumps({"config": {kind: entry}}).encode()


MEMBERS = {
    "example inputs": {"net/data/sample_inputs/model.pt": a_pickle},
    "weights of old": {"net/data/weights/model.pt": a_pickle},
    "constants of old": {"net/data/constants/model.pt": a_pickle},
    "a pickled weight": {
        "net/data/weights/model_weights_config.json": lambda: config("layer.weight", "weight_9"),
        "net/data/weights/weight_9": a_pickle,
    },
    "an opaque object": {
        "net/data/constants/model_constants_config.json": lambda: config("thing", "opaque_obj_0"),
        "net/data/constants/opaque_obj_0": lambda: pickle.dumps(_Marking()),
    },
    "a compiled program": {"net/data/aotinductor/model/model.so": lambda: b"\x7fELF"},
    "two programs of a name": {"net/MODELS/model.json": lambda: b"{}"},
    "a program elsewhere": {
        "net/models/other.txt": lambda: json.dumps({"graph_module": {"expr_str": RUN}}).encode(),
    },
}


@pytest.mark.parametrize("how", MEMBERS)
def test_members_that_hold_code_are_not_run(
    how: str, ordinary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(ordinary) as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            if info.filename not in MEMBERS[how]:
                new.writestr(info.filename, old.read(info))
        for name, make in MEMBERS[how].items():
            new.writestr(name, make())
    with pytest.raises(ModelLoadError):
        FRAMEWORK.describe(model(path))
    assert not Path("MARK").exists()


def test_an_archive_that_readers_see_in_two_ways(ordinary: Path, tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(b"something else first" + ordinary.read_bytes())
    with pytest.raises(ModelLoadError, match="before or between its members"):
        FRAMEWORK.describe(model(path))


def test_an_ordinary_program_asks_for_nothing_and_is_described_without_being_run(
    ordinary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with admitted(model(ordinary)):
        pass
    ran = FRAMEWORK.describe(model(ordinary))
    monkeypatch.setattr(torch.export.ExportedProgram, "module", lambda *_, **__: pytest.fail("it was run"))
    found = describe_unrun(model(ordinary))
    assert found.missing == ()
    assert found.description.inputs == ran.inputs
    assert [spec.high for spec in found.description.inputs] == [None, 11]
    assert found.description.outputs == ran.outputs
    assert found.description.weights == ran.weights
    assert found.description.operators == ran.operators


@pytest.mark.parametrize(
    "text",
    [
        "2*s0", "Max(1, s0)", "(s0 - 1)//2 + 1", "s0**2", "Mod(s0, 4)", "u0 + 1", "Eq(s0, 3)", "(s0 > 2) & (s1 < 4)",
        "Add(FloorDiv(Add(Symbol('s48', positive=True, integer=True), Integer(-1)), Integer(2)), Integer(1))",
        "Pow(Symbol('s0', integer=True), Integer(2))", "Float('0.5', precision=53)", "Rational(1, 2)",
    ],
)  # fmt: skip
def test_sizes_as_pytorch_writes_them(text: str) -> None:
    assert is_size(text)


@pytest.mark.parametrize(
    "text",
    [
        "L['y'].size()[0] == L['x'].size()[0]", "(1 + (((-1) + L['y'].size()[3]) // 2)) != 1",
        "(4 % ((1 + L['x'][0].size()[2])*4)) != 0", "not (L['x'].size()[0] <= 1)",
        "math.floor(L['x'].size()[0]) >= 2", "Max(L['a']['b'].size()[0], 2) == 4",
    ],
)  # fmt: skip
def test_guards_as_pytorch_writes_them(text: str) -> None:
    assert is_guard(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "L['x'].data", "L['x'].__len__()", "open('x')", "L[L['x']]", "L['x'].size", "L.size()", "1; 2",
        "math.floor.__call__(1)", "L['a\\'b'].size()[0]", "L['a\"b'].size()[0]", "L['a\\\\'].size()[0]", "f'{1}'",
        "(x := 1)", "1 if L['x'].size()[0] else 2", "9**9**9", "'a' * 99999999999999999999999", "2**1000000", None, 5,
        "(" * 10_000 + ")" * 10_000, "((((9**64)**64)**64)**64)", "math.factorial(10**9)", "1 << (1 << 60)",
        "Pow(Pow(Pow(Integer(9), Integer(64)), Integer(64)), Integer(64))", "*".join(["s0"] * 300),
        "Float('0.5', precision=99999999999)", "Float('1e999999999')", "Max(" + ",".join(["s1"] * 99) + ")",
        "(s0+s1+s2+s3+s4+s5)**32", "2**s0", "u99999999",
    ],
)  # fmt: skip
def test_what_is_neither(text: Any) -> None:
    assert not is_size(text)
    assert not is_guard(text) or text == "L.size()"


def test_all_fields_of_pytorchs_schema_that_hold_texts_are_looked_through() -> None:
    """A new one fails it until it's known what PyTorch does with it."""
    from torch._export.serde import schema

    from conrepair.formats.torch.load import exported_screening as exported

    found, pending, seen = set(), [schema.ExportedProgram, schema.PayloadConfig], set()
    while pending:
        holder = pending.pop()
        if holder in seen:
            continue
        seen.add(holder)
        for name, hint in typing.get_type_hints(holder, globalns=vars(schema)).items():
            parts = parts_of(hint)
            if str in parts:
                found.add(name)
            pending += [part for part in parts if dataclasses.is_dataclass(part)]
    looked = exported._OPERATORS | exported._NAMES | exported._SIZES | exported._SPECS | exported._PLAIN
    assert found - {"metadata", "_type"} == looked | {"guards_code"}


def parts_of(hint: Any) -> set[Any]:
    """The types that a type is made of."""
    if isinstance(hint, typing.ForwardRef | str):
        from torch._export.serde import schema

        return {getattr(schema, getattr(hint, "__forward_arg__", hint))}
    inner = set().union(*map(parts_of, typing.get_args(hint)))
    return inner or {hint}


def test_what_pytorch_computes_sizes_with_is_an_operator() -> None:
    from torch._export.serde.serialize import _SYM_OPS

    for function in _SYM_OPS:
        module = {"torch": "torch", "math": "math"}.get(function.__module__.partition(".")[0], "_operator")
        assert is_operator(f"{module}.{function.__name__}"), function


def test_pytorch_is_given_what_was_looked_through(ordinary: Path, tmp_path: Path) -> None:
    def change(program: Program) -> None:
        program["unknown"] = RUN
        for each in program["graph_module"]["graph"]["nodes"]:
            each["metadata"] |= {"source_fn_stack": "a,torch.os.system", "unknown": RUN}

    with admitted(model(rewritten(ordinary, tmp_path / "net.pt2", change))) as path, zipfile.ZipFile(path) as copy:
        (name,) = (name for name in copy.namelist() if name.endswith("models/model.json"))
        program = json.loads(copy.read(name))
    notes = {key for each in program["graph_module"]["graph"]["nodes"] for key in each["metadata"]}
    assert "unknown" not in program
    assert {"stack_trace", "nn_module_stack"} <= notes
    assert not notes & {"source_fn_stack", "unknown"}


def test_an_operator_that_opens_files_is_found_as_an_argument(ordinary: Path, tmp_path: Path) -> None:
    """A higher-order operator calls it."""
    (tmp_path / "precious").write_text("all that is dear")

    def change(program: Program) -> None:
        graph = program["graph_module"]["graph"]
        name = graph["nodes"][-1]["outputs"][0]["as_tensor"]["name"]
        inputs = [
            {"as_operator": "torch.ops.aten.from_file.default"},
            {"as_string": str(tmp_path / "precious")},
            {"as_bool": True},
            {"as_int": 4},
        ]
        graph["nodes"][-1] = {
            "target": "torch.ops.higher_order.wrap",
            "inputs": [{"name": "", "arg": item, "kind": 1} for item in inputs],
            "outputs": [{"as_tensor": {"name": name}}],
            "metadata": {},
        }

    path = rewritten(ordinary, tmp_path / "net.pt2", change)
    for look in (FRAMEWORK.describe, describe_unrun):
        with pytest.raises(ModelLoadError, match=r"from_file\.default, which opens files"):
            look(model(path))
    assert (tmp_path / "precious").read_text() == "all that is dear"


class _Branching(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))


class _Scanning(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops.scan import scan

        return scan(lambda carry, a: (carry + a, carry * a), x[0] * 0, x)


class _Looping(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda a: a.sum() < 9, lambda a: (a.abs() + 1,), (x,))[0]


class _Rebuilding(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            halves = x.sin()
        return torch.utils.checkpoint.checkpoint(torch.cos, halves, use_reentrant=False)


@pytest.mark.parametrize("network", [_Branching, _Scanning, _Looping, _Rebuilding])
def test_programs_of_higher_order_go_on_opening(network: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    torch.export.save(torch.export.export(network(), (x,)), tmp_path / "net.pt2")
    runnable = FRAMEWORK.load(model(tmp_path / "net.pt2"))
    for found, expected in zip(
        runnable.run({"x": x.numpy()}).values(), torch.utils._pytree.tree_leaves(network()(x)), strict=True
    ):
        assert torch.equal(torch.from_numpy(found), expected)
