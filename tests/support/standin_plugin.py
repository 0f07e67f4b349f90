"""A package with plug-ins, as if it were installed: a format, a backend, a converter, a job, and broken ones."""

from __future__ import annotations

from pathlib import Path

ENTRY_POINTS = """
[conrepair.formats]
standin = standin:FORMAT
broken = standin_broken:FORMAT

[conrepair.backends]
halves = standin:BACKEND
tvm = standin:BACKEND
fuses = standin:FUSES
named = standin:NAMED
text = standin:TEXT

[conrepair.converters]
onnx-standin = standin:CONVERTER

[conrepair.jobs]
standin_job = standin:job

[conrepair.verbs]
greet = standin_verbs:VERBS
broken-verb = standin_broken:VERBS

[conrepair.sections]
greetings = standin_verbs:GREETINGS

[conrepair.diagnoses]
odd-sizes = standin_diagnosis:odd_findings
fails = standin_diagnosis:fails

[conrepair.diagnosis]
misspelled = standin:FORMAT
"""

_PACKAGE = '''
from pathlib import Path

from conrepair.plugins import (
    Backend, ConfigError, Converter, Description, Format, ModelLoadError, Option, Runnable, TensorSpec, loading
)

MAGIC = b"standin\\n"
TEXT = "no backend"


def proto_of(model):
    import onnx

    data = Path(model.path).read_bytes()
    if model.framework == "standin":
        data = data[len(MAGIC):]
    with loading(model, "a stand-in's file"):
        return onnx.load_from_string(data)


def spec_of(value):
    shape = [item.dim_value or item.dim_param for item in value.type.tensor_type.shape.dim]
    return TensorSpec(value.name, tuple(shape), "float32")


class Evaluated(Runnable):
    def __init__(self, proto, factor=1.0):
        from onnx.reference import ReferenceEvaluator

        self.inputs = tuple(map(spec_of, proto.graph.input))
        self.outputs = tuple(map(spec_of, proto.graph.output))
        self._evaluator, self._factor = ReferenceEvaluator(proto), factor

    def _run(self, feeds):
        values = self._evaluator.run(None, dict(feeds))
        return {spec.name: value * self._factor for spec, value in zip(self.outputs, values)}


class Standin(Format):
    words = "a stand-in (.standin)"
    suffixes = (".standin",)

    def recognizes(self, path):
        return path.is_file() and path.read_bytes().startswith(MAGIC)

    def describe(self, model):
        proto = proto_of(model)
        inputs, outputs = (tuple(map(spec_of, values)) for values in (proto.graph.input, proto.graph.output))
        operators = [node.op_type for node in proto.graph.node]
        return Description.counted(operators, {}, format="stand-in", inputs=inputs, outputs=outputs)

    def load(self, model, *, second_opinion=False):
        if second_opinion:
            raise ModelLoadError("a stand-in has one arithmetic")
        return Evaluated(proto_of(model))

    def observed(self, model, beside):
        import onnx
        from onnx.reference import ReferenceEvaluator

        proto = proto_of(model)
        names = [value.name for value in proto.graph.output]
        names += [name for node in proto.graph.node for name in node.output if name not in names]
        evaluator = ReferenceEvaluator(proto)

        def run(feeds):
            return dict(zip(names, evaluator.run(names, dict(feeds))))

        return run


class Halves(Backend):
    """ONNX's own evaluator, which multiplies what comes out."""

    def check(self, options):
        if unknown := sorted(set(options) - {"factor"}):
            raise ConfigError(f"halves has no option {unknown[0]}: it has factor")

    def refuses(self, model):
        return None if model.framework == "onnx" else "halves runs ONNX files"

    def takes(self, model, options):
        return "onnx"

    def load(self, model, options):
        return Evaluated(proto_of(model), float(options.get("factor", 0.5)))

    def lacks(self):
        return "pip install nothing"


class Fuses(Halves):
    """The same, wrong where a product is followed by a Tanh, unless the product is an output."""

    def load(self, model, options):
        proto = proto_of(model)
        ends = {value.name for value in proto.graph.output}
        made = {name: node for node in proto.graph.node for name in node.output}
        for node in proto.graph.node:
            before = made.get(node.input[0])
            if node.op_type == "Tanh" and before.op_type == "MatMul" and before.output[0] not in ends:
                node.op_type = "Softsign"
        return Evaluated(proto, 1.0)


class Named(Fuses):
    """The same, and it gives its tensors by name."""

    def takes(self, model, options):
        return model.framework

    def observed(self, model, options):
        seen = Standin().observed(model, None)
        return lambda feeds: seen(feeds) | {"y": self.load(model, options).run(feeds)["y"]}


def convert(model, folder, options):
    data = bytearray(Path(model.path).read_bytes())
    (folder / "made.standin").write_bytes(MAGIC + data)
    return "made.standin"


def job(folder, text: str) -> str:
    return f"{text} in {folder.name}"


FORMAT, BACKEND, FUSES, NAMED = Standin(), Halves(), Fuses(), Named()
CONVERTER = Converter("onnx-standin", "onnx", "standin", ("standin-plugins",), convert)
'''


_VERBS = '''
from conrepair.plugins import Catalogue, Part, Strict

VERBS = Catalogue("standin_verbs")


@VERBS.verb("NAME [OPTIONS]", runs="said:said", examples=[("conrepair greet you", "say hello")])
def greet(parser):
    """Say hello.

    Say hello to somebody, as a verb of a plug-in does.
    """
    parser["models"].add_argument("name", metavar="NAME", help="Of whom.")


class Greetings(Strict):
    """Who is greeted."""

    folder: str = "greetings"
    names: tuple[str, ...] = ()


_SAID = "standin_verbs.said"
GREETINGS = Part(Greetings, "Who is greeted, after the audit.", f"{_SAID}:configured", f"{_SAID}:problems")
'''
_SAID = """
def said(options):
    print(f"hello {options.name}")
    return 0


def configured(section, config, base, *, quiet):
    folder = base / config.output / section.folder
    folder.mkdir(parents=True)
    (folder / "names.txt").write_text(" ".join(section.names))
    return 0


def problems(section, config, base):
    if "nobody" in section.names:
        yield "$.greetings.names: nobody can't be greeted"
"""
_DIAGNOSIS = '''
from conrepair.plugins import Finding, Kind


def odd_findings(region):
    """A product that somebody knows to be wrong."""
    for node in region.target.nodes:
        if node.op == "MatMul" and region.source.nodes:
            layer = region.source.nodes[0].layer
            yield Finding(Kind.GRAPH, "the stand-in's rule explains it", (layer,), (node.layer,))


def fails(region):
    raise RuntimeError("a rule that fails")
'''


def install(folder: Path) -> Path:
    """Write the package, with the metadata of one that's installed.

    Args:
        folder: That Python looks for packages in; it's made.
    """
    about = folder / "standin_plugins-1.2.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: standin-plugins\nVersion: 1.2\nRequires-Dist: onnx\n"
    )
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "standin.py").write_text(_PACKAGE)
    (folder / "standin_verbs").mkdir()
    (folder / "standin_verbs" / "__init__.py").write_text(_VERBS)
    (folder / "standin_verbs" / "said.py").write_text(_SAID)
    (folder / "standin_diagnosis.py").write_text(_DIAGNOSIS)
    (folder / "standin_broken.py").write_text("import a_module_that_nobody_has\n")
    return folder
