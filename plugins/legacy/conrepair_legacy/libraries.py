"""Entries of `dll_libraries` and `export_dll_libraries`: models of other libraries, and conversions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conrepair.application.config.older import KeyOutcome
from conrepair_legacy.account import UNREAD, Context
from conrepair_legacy.inputs import account_for_input
from conrepair_legacy.origins import CannotDoError, LegacyOrigin, origin_of
from conrepair_legacy.recipes import Recipe, account_for_size, recipe_of, recipe_words, sized
from conrepair_legacy.routes import LegacyRoute, direction, route_of, switched_off
from conrepair_legacy.schema import LegacyLibrary, LegacyModel

_IGNORED = {
    "load": "what `model` is shows by itself",
    "converted_lib_model_name": UNREAD,
    "input_name": "inputs are paired by name, shape and order",
    "output_name": "outputs are paired by name, shape and order",
    "scalar_input": "there is one way to call tf2onnx",
    "args_no": "the network itself says how many inputs it takes",
    "execution_type": "models always run in their own libraries",
}


@dataclass(frozen=True)
class Wish:
    """What one entry asks for.

    Attributes:
        path: Of the entry, in the older configuration.
        library: As it's named there.
        origin: What is loaded.
        route: What it's converted by; None for a model that is only run.
        off: Whether `noop` switches it off.
        recipe: Preprocessing, in our form.
        input: Its shape.
        dtype: Of the input.
        output: Its shape.
    """

    path: str
    library: str
    origin: LegacyOrigin
    route: LegacyRoute | None
    off: bool
    recipe: Recipe
    input: tuple[Any, ...] | None
    dtype: str | None
    output: tuple[Any, ...] | None


def translate_library(context: Context, path: str, given: LegacyLibrary, model: LegacyModel) -> Wish | None:
    """Read one entry.

    Args:
        context: Of the translation.
        path: Of the entry.
        given: The entry.
        model: That it belongs to.

    Returns:
        What it asks for; None if that can't be done, which the account says.
    """
    off = switched_off(given.library)
    try:
        wish = _wish(context, path, given, model, off=off)
    except CannotDoError as error:
        words = f"{given.library}: {error}"
        if off:
            context.account.ignored(path, f"noop switches it off. Switched on, it couldn't be done either: {words}")
        else:
            context.account.refused(path, words)
        return None
    _account_for(context, path, given, wish)
    return wish


def _wish(context: Context, path: str, given: LegacyLibrary, model: LegacyModel, *, off: bool) -> Wish:
    source, target = direction(given.library)
    if target is None and (given.format or "").lower() == "onnx":
        target = "onnx"
    origin = _origin(context, given, model)
    if origin.framework != source:
        raise CannotDoError(
            f"it reads {source}, and {origin.words} is of {origin.framework}. Correct one of `library` and `model`"
        )
    origin = _with_weights(context, path, given, origin)
    opset = given.opset if given.opset is not None else model.opset
    route = None if target is None else route_of(given.library, source, target, opset)
    try:
        recipe = recipe_of(given.library, given.dependency or given.model or "", enabled=context.preprocessing)
    except CannotDoError as error:
        context.account.refused(f"{path}.dependency", str(error))
        recipe = "raw"
    image = given.image_dimension or model.layers.image_dimension
    recipe = sized(recipe, image, given.input)
    return Wish(path, given.library, origin, route, off, recipe, given.input, given.dtype, given.output)


def _origin(context: Context, given: LegacyLibrary, model: LegacyModel) -> LegacyOrigin:
    text = given.model or given.dependency
    if not text:
        raise CannotDoError("it has no `model`. Name the file or the network")
    folders = (model.paths.dll_models_out_relative, model.paths.models_out_relative)
    return origin_of(text, context.paths, folders, shape=given.input)


def _with_weights(context: Context, path: str, given: LegacyLibrary, origin: LegacyOrigin) -> LegacyOrigin:
    """The origin with the weights of a file in place of the library's."""
    account, factory = context.account, "factory" in origin.fields
    if given.weights_file and factory:
        file = context.paths.path(given.weights_file)
        account.translated(f"{path}.weights_file", f"weights: {file}")
        if given.weights_url:
            account.ignored(f"{path}.weights_url", "weights_file has them")
        return LegacyOrigin(
            origin.framework,
            {**origin.fields, "kwargs": {"weights": None}, "weights": file},
            f"{origin.fields['factory']} with the weights {file}",
        )
    if given.weights_url and factory:
        raise CannotDoError(
            f"weights aren't downloaded from addresses ({given.weights_url}). Download them yourself and give the "
            "file as weights_file"
        )
    words = "the model's file has its weights"
    account.keys(path, given, {"weights_file": words, "weights_url": words})
    return origin


def _account_for(context: Context, path: str, given: LegacyLibrary, wish: Wish) -> None:
    account = context.account
    account.keys(path, given, _IGNORED)
    off = ", switched off as noop does" if wish.off else ""
    if wish.route is None:
        account.translated(f"{path}.library", f"a model of its own{off}")
    else:
        remarks = "".join(f"; {remark}" for remark in wish.route.remarks)
        account.translated(f"{path}.library", f"a conversion by {' > '.join(wish.route.via)}{off}{remarks}")
    account.keys(path, given, {"model": wish.origin.words}, KeyOutcome.TRANSLATED)
    if f"{path}.dependency" not in account:
        account.keys(path, given, {"dependency": recipe_words(wish.recipe)}, KeyOutcome.TRANSLATED)
    account_for_size(account, path, given, wish.recipe)
    _account_for_shapes(context, path, given, wish)


def _account_for_shapes(context: Context, path: str, given: LegacyLibrary, wish: Wish) -> None:
    account = context.account
    keys = [key for key in ("input", "dtype") if getattr(given, key) is not None]
    account_for_input(context, path, keys, given.dtype, declares=wish.origin.hides_inputs)
    account.keys(path, given, {"output": "the model says it"})
    format_words = "a conversion to ONNX" if wish.route is not None else "the model is stored in its own format"
    account.keys(path, given, {"format": format_words}, KeyOutcome.TRANSLATED)
    exporting = wish.route is not None and any("opset" in item for item in wish.route.options.values())
    if exporting:
        account.keys(path, given, {"opset": "the converter's option of that name"}, KeyOutcome.TRANSLATED)
    elif wish.route is not None and "opset" in "".join(wish.route.remarks):
        account.keys(path, given, {"opset": "no converter writes it; theirs is taken"}, KeyOutcome.REFUSED)
    else:
        account.keys(path, given, {"opset": "nothing is written as ONNX on the way"})
