from pathlib import Path

from conrepair_onnx_keras.importer.listing import listing
from conrepair_onnx_keras.importer.node import rules

DOCS = Path(__file__).parents[4] / "docs" / "measured" / "onnx-operators.md"


def test_the_list_in_the_documentation_is_up_to_date():
    assert DOCS.read_text(encoding="utf-8") == listing(), (
        "run: python -m conrepair_onnx_keras.importer.listing docs/measured/onnx-operators.md"
    )


def test_every_rule_is_listed_once():
    lines = listing().splitlines()
    for rule in rules().values():
        if rule.domain != "conrepair":
            name = f"{rule.domain}.{rule.operator}" if rule.domain else rule.operator
            assert sum(line.startswith(f"| {name} |") for line in lines) == 1
