"""Models of the older form, each with its conversions, as models of ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conrepair.application.config.older import KeyOutcome
from conrepair_legacy.account import ONE_FOLDER, UNREAD, Context
from conrepair_legacy.inputs import account_for_input, declared_input
from conrepair_legacy.libraries import Wish, translate_library
from conrepair_legacy.origins import CannotDoError, LegacyOrigin, ModelNames, origin_of
from conrepair_legacy.recipes import Recipe, account_for_size, recipe_of, recipe_words, sized
from conrepair_legacy.routes import direction
from conrepair_legacy.schema import LegacyModel, LegacyPaths

_IGNORED = dict.fromkeys(
    ("load", "url2", "category", "input_name_url", "ranks_url", "dll_alias", "evaluate_dlls", "dl_input_name"), UNREAD
) | {
    "type": "what the model is shows by itself",
    "input_name": "inputs are paired by name, shape and order",
    "output_name": "outputs are paired by name, shape and order",
    "dll_libraries_disabled": "they were disabled; move what you want to dll_libraries",
}


@dataclass
class _Draft:
    """A model of our form in the making, and the wishes that belong to it."""

    origin: LegacyOrigin
    recipe: Recipe
    name: str
    input: tuple[Any, ...] | None
    dtype: str | None
    skip: bool = False
    compare_with: str | None = None
    wishes: list[Wish] = field(default_factory=list)

    def form(self) -> dict[str, Any]:
        """As our configuration writes it."""
        value: dict[str, Any] = {"name": self.name, **self.origin.fields}
        if self.origin.hides_inputs and self.input:
            value["inputs"] = [declared_input(self.input, self.dtype)]
        value["recipe"] = self.recipe
        if self.compare_with is not None:
            value["compare_with"] = self.compare_with
        conversions: list[dict[str, Any]] = []
        for wish in self.wishes:
            form = None if wish.route is None else wish.route.form(off=wish.off)
            if form is not None and form not in conversions:
                conversions.append(form)
        if conversions:
            value["conversions"] = conversions
        return value | ({"skip_analysis": True} if self.skip else {})


def translate_model(context: Context, path: str, given: LegacyModel, names: ModelNames) -> list[dict[str, Any]]:
    """Translate one model with all its libraries.

    Args:
        context: Of the translation.
        path: Of the model.
        given: The model.
        names: Of models.

    Returns:
        Models of our form: the model itself where it can be had, and one for every other network that its libraries
        load.
    """
    _account_for(context, path, given)
    drafts: list[_Draft] = []
    main = _main(context, path, given, names)
    if main is not None:
        drafts.append(main)
    exported = given.export_dll_libraries if given.export_dlls else ()
    entries = [(f"{path}.dll_libraries[{index}]", item) for index, item in enumerate(given.dll_libraries)]
    entries += [(f"{path}.export_dll_libraries[{index}]", item) for index, item in enumerate(exported)]
    for place, item in entries:
        wish = translate_library(context, place, item, given)
        if wish is not None:
            _assign(context, wish, drafts, given, names)
    for draft in drafts:
        if draft is not main:
            _settle(context, draft, main, given)
    return [draft.form() for draft in drafts]


def _main(context: Context, path: str, given: LegacyModel, names: ModelNames) -> _Draft | None:
    key, text = _named(given)
    shape = given.layers.input
    folders = (given.paths.models_out_relative, given.paths.dll_models_out_relative)
    try:
        if not text:
            raise CannotDoError("it has no `model` and no `url`. Name the file or the network")
        origin = origin_of(text, context.paths, folders, alias=given.alias, shape=shape)
        _check_library(given, origin)
    except CannotDoError as error:
        context.account.refused(f"{path}.{key}", f"{error}. The conversions of other networks remain")
        context.account.keys(path, given, {"library": "the model isn't loaded", "layers": "the model isn't loaded"})
        return None
    context.account.translated(f"{path}.{key}", origin.words)
    recipe = _recipe(context, path, given, text, origin)
    name = names.new(given.name)
    context.account.translated(f"{path}.name", f"name: {name}")
    _account_for_layers(context, path, given, origin, recipe)
    return _Draft(origin, recipe, name, shape, given.dtype, bool(given.skip_analysis))


def _named(given: LegacyModel) -> tuple[str, str]:
    """The key that says what the model is, and what it says."""
    keys = ("model", "url") if given.type == "library" else ("url", "model")
    return next(((key, str(getattr(given, key))) for key in keys if getattr(given, key)), (keys[0], ""))


def _check_library(given: LegacyModel, origin: LegacyOrigin) -> None:
    """Refuse a model that is of another library than it says.

    Raises:
        CannotDoError: if so.
    """
    if given.library is None:
        return
    framework, _ = direction(given.library)
    if framework not in {origin.framework, "onnx"} and origin.framework != "onnx":
        raise CannotDoError(f"`library` is {given.library}, and {origin.words} is of {origin.framework}")


def _recipe(context: Context, path: str, given: LegacyModel, text: str, origin: LegacyOrigin) -> Recipe:
    library = given.library or origin.framework
    recipe: Recipe
    try:
        recipe = recipe_of(library, text if "." in text else given.name, enabled=context.preprocessing)
        context.account.keys(
            path, given, {"library": f"the model's format; {recipe_words(recipe)}"}, KeyOutcome.TRANSLATED
        )
    except CannotDoError as error:
        recipe = "raw"
        context.account.refused(f"{path}.library", str(error))
    if context.preprocessing and str(origin.fields.get("zoo")).startswith("efficientnet"):
        recipe = "efficientnet-lite"
    return sized(recipe, given.layers.image_dimension, given.layers.input)


def _assign(context: Context, wish: Wish, drafts: list[_Draft], given: LegacyModel, names: ModelNames) -> None:
    """Put a wish to the model that it converts; one that isn't there yet is added."""
    draft = next((draft for draft in drafts if draft.origin == wish.origin), None)
    if draft is None:
        library = wish.library.lower().replace("noop_", "").partition("_to_")[0]
        name = names.new(f"{given.name}-{library}")
        draft = _Draft(wish.origin, wish.recipe, name, wish.input, wish.dtype)
        drafts.append(draft)
    else:
        _account_for_shared(context, wish, draft)
    draft.wishes.append(wish)


def _account_for_shared(context: Context, wish: Wish, draft: _Draft) -> None:
    """Say what isn't an entry's own, as its network is there already."""
    account = context.account
    if wish.route is None:
        account.translated(f"{wish.path}.library", f"model '{draft.name}', which is this one")
    if wish.recipe != draft.recipe:
        words = f"{recipe_words(wish.recipe)} is wanted; a network has one, and '{draft.name}' has "
        account.refused(f"{wish.path}.dependency", words + recipe_words(draft.recipe))
    if wish.input and draft.origin.hides_inputs and wish.input != draft.input:
        account.refused(f"{wish.path}.input", f"'{draft.name}' has another, and a network is built once")


def _settle(context: Context, draft: _Draft, main: _Draft | None, given: LegacyModel) -> None:
    """Decide whether a model besides the main one is skipped, and whether it's a conversion of that."""
    draft.skip = bool(given.skip_analysis) or all(wish.off for wish in draft.wishes)
    converted = any(wish.route is not None for wish in draft.wishes)
    shapes = {wish.output for wish in draft.wishes}
    if main is not None and not converted and "path" in draft.origin.fields and shapes == {given.layers.output}:
        draft.compare_with = main.name
        for wish in draft.wishes:
            off = ", switched off as noop does" if wish.off else ""
            words = f"model '{draft.name}', a conversion of '{main.name}' made elsewhere (compare_with){off}"
            context.account.translated(f"{wish.path}.library", words)


def _account_for(context: Context, path: str, given: LegacyModel) -> None:
    account = context.account
    account.keys(path, given, _IGNORED)
    account.keys(path, given, {"name": "it names the models of its libraries"})
    account.keys(path, given, {"alias": "a name of the downloaded file"})
    account.keys(path, given, {"model": "`url` says what the model is", "url": "`model` says what the model is"})
    words = "skip_analysis: it stays, and is left out" if given.skip_analysis else "the model is part of the audit"
    account.keys(path, given, {"skip_analysis": words}, KeyOutcome.TRANSLATED)
    account.keys(f"{path}.paths", given.paths, dict.fromkeys(LegacyPaths.model_fields, ONE_FOLDER))
    account.keys(path, given, {"opset": "for conversions that have none of their own"}, KeyOutcome.TRANSLATED)
    for key in ("dll_libraries", "export_dll_libraries"):
        if key in given.model_fields_set and not getattr(given, key):
            account.ignored(f"{path}.{key}", "it's empty")
    if given.export_dlls:
        account.translated(f"{path}.export_dlls", "every model that is made is kept in the audit's folder (models/)")
    else:
        words = "nothing is exported; what is made lies in the audit's folder anyway (models/)"
        account.keys(path, given, {"export_dlls": words, "export_dll_libraries": words})


def _account_for_layers(
    context: Context, path: str, given: LegacyModel, origin: LegacyOrigin, recipe: Recipe
) -> None:
    account = context.account
    declares = origin.hides_inputs
    if given.dtype is not None:
        account_for_input(context, path, ["dtype"], given.dtype, declares=declares)
    if given.layers.input is not None:
        account_for_input(context, f"{path}.layers", ["input"], given.dtype, declares=declares)
    account.keys(f"{path}.layers", given.layers, {"output": "the model says it"})
    account_for_size(account, f"{path}.layers", given.layers, recipe)
