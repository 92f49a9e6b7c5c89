"""Recipes by name: backends offer them through providers, a registry finds them."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from typing_extensions import Self

from compiler.compat.session.provider import BackendRecipeProvider
from compiler.compat.session.recipe import ExportRecipe, RecipeType
from schema.backends import BACKENDS, resolve


class RecipeRegistry:
    """Providers by backend name; a later one replaces an earlier one.

    It is a singleton: each call of the class returns the same object.
    """

    _instance: ClassVar[RecipeRegistry | None] = None
    _initialized: ClassVar[bool] = False

    def __new__(cls) -> Self:
        """Return the registry of the process."""
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cast("Self", cls._instance)

    def __init__(self) -> None:
        if not RecipeRegistry._initialized:
            RecipeRegistry._initialized = True
            self._providers: dict[str, BackendRecipeProvider] = {}

    def register_backend_recipe_provider(self, provider: BackendRecipeProvider) -> None:
        """Add a provider."""
        self._providers[provider.backend_name] = provider

    def list_backends(self) -> list[str]:
        """Return the names of all backends that offer recipes."""
        return [*self._providers]

    def get_supported_recipes(self, backend: str) -> list[RecipeType]:
        """Return the recipe types of a backend.

        Raises: ValueError if it offers none
        """
        return [*self._provider(backend).get_supported_recipes()]

    def create_recipe(
        self, recipe_type: RecipeType, backend: str, **kwargs: object
    ) -> ExportRecipe | None:
        """Return a recipe of a backend, None for an unsupported type.

        Raises: ValueError if the backend offers none at all
        """
        return self._provider(backend).create_recipe(recipe_type, **kwargs)

    def _provider(self, backend: str) -> BackendRecipeProvider:
        if backend not in self._providers:
            there = ", ".join(self._providers) or "none"
            raise ValueError(f"Backend '{backend}' not available. Available: {there}")
        return self._providers[backend]


recipe_registry = RecipeRegistry()
for _backend in BACKENDS.values():
    if _backend.recipes:
        recipe_registry.register_backend_recipe_provider(resolve(_backend.recipes)())


def recipe_of(recipe: Any, **kwargs: object) -> ExportRecipe:  # noqa: ANN401 - a RecipeType
    """Return the recipe of a type.

    Raises: ValueError if it is not a recipe type, or not offered
    """
    if not isinstance(recipe, RecipeType):
        raise ValueError(f"Invalid recipe type: {recipe}")  # noqa: TRY004 - as documented
    backend = recipe.get_backend_name()
    found = recipe_registry.create_recipe(recipe, backend, **kwargs)
    if found is None:
        names = [one.value for one in recipe_registry.get_supported_recipes(backend)]
        raise ValueError(
            f"Recipe '{recipe.value}' not supported by '{backend}'. Supported: {names}"
        )
    return found
