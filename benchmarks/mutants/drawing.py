"""Draw mutants from cosmic-ray's, evenly from the files and from the places in each."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import cosmic_ray.ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names

from benchmarks.mutants.mutant import Mutant, mutant_of

__all__ = ["drawn"]

# Others, such as a shift for a sum, mostly raise at once: any test notices them, and they would flatter the figure.
_WANTED = re.compile(
    r"core/(ReplaceBinaryOperator_(Add|Sub|Mul|Div)_(Add|Sub|Mul|Div)"
    r"|ReplaceBinaryOperator_Bit(Or|And|Xor)_Bit(Or|And|Xor)"
    r"|ReplaceComparisonOperator_(Lt|LtE|Gt|GtE)_(Lt|LtE|Gt|GtE)"
    r"|ReplaceComparisonOperator_(Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is)"
    r"|ReplaceUnaryOperator_(Delete_\w+|USub_UAdd)"
    r"|AddNot|Replace(True|False|And|Or|Break|Continue)With\w+"
    r"|ExceptionReplacer|NumberReplacer|ZeroIterationForLoop)"
)

Variant = tuple[str, Operator, int]


def drawn(root: Path, files: Sequence[str], seed: int) -> Iterator[Mutant]:
    """All mutants in a random order in which each next file has its turn, one for each place.

    Changes of annotations, decorators, checks of lengths and words for people are left out, and what doesn't compile.

    Args:
        root: Of the repository.
        files: Paths from there.
        seed: Of the order.
    """
    generator = random.Random(seed)  # noqa: S311 (nothing secret)
    turns = [_of_file(root, file, generator) for file in generator.sample(files, len(files))]
    while turns:
        following = []
        for mutants in turns:
            mutant = next(mutants, None)
            if mutant is not None:
                following.append(mutants)
                yield mutant
        turns = following


def _of_file(root: Path, file: str, generator: random.Random) -> Iterator[Mutant]:
    source = (root / file).read_text(encoding="utf-8")
    meaning = _meaning(source)
    generator = random.Random(generator.random())  # noqa: S311
    places = list(_variants(source).values())
    generator.shuffle(places)
    for variants in places:
        name, operator, occurrence = generator.choice(variants)
        changed = mutate_code(source, operator, occurrence)
        if changed is not None and _meaning(changed) not in (None, meaning):
            yield mutant_of(file, name.removeprefix("core/"), source, changed)


def _variants(source: str) -> dict[tuple[int, int], list[Variant]]:
    """By the place where they change something."""
    nodes = list(cosmic_ray.ast.ast_nodes(cosmic_ray.ast.get_ast(source)))
    found: dict[tuple[int, int], list[Variant]] = {}
    for name in filter(_WANTED.fullmatch, operator_names()):
        operator = get_operator(name)()
        places = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, place in enumerate(places):
            found.setdefault(place, []).append((name, operator, occurrence))
    return found


def _meaning(source: str) -> str | None:
    """What a file does, but for what bears no verdict; None where it does nothing."""
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return ast.dump(_Bare().visit(ast.parse(source)))


class _Bare(ast.NodeTransformer):
    """Without annotations, decorators, formatted text, and checks that zip makes of lengths."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns, node.decorator_list = None, []
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.decorator_list = []
        return self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]  # whether by name or by place
        node.defaults = [*node.defaults, *(value for value in node.kw_defaults if value is not None)]
        node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [item for item in node.keywords if item.arg != "strict"]  # zip's check of lengths
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_JoinedStr(self, _node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("")
