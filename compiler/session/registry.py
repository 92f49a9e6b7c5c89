"""Recipes by name: backends offer them through providers, a registry finds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from compiler.session.recipe import ExportRecipe, RecipeType
from compiler.session.xnnpack_recipes import xnnpack_recipe


class BackendRecipeProvider(ABC):
    """Offers the recipes of one backend."""

    @property
    @abstractmethod
    def backend_name(self) -> str:
        """Return the name its recipe types give as their backend."""

    @abstractmethod
    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """Return what it offers."""

    @abstractmethod
    def create_recipe(self, recipe_type: RecipeType, **kwargs: object) -> ExportRecipe | None:
        """Return a recipe, None for a type it does not offer.

        Args:
            recipe_type: what is wanted
            **kwargs: options of that type
        """

    def supports_recipe(self, recipe_type: RecipeType) -> bool:
        """Return whether it offers a type."""
        return recipe_type in self.get_supported_recipes()


class RecipeRegistry:
    """Providers by the name of their backend; a later one of a name replaces an earlier one."""

    def __init__(self, providers: Sequence[BackendRecipeProvider] = ()) -> None:
        self._providers = {provider.backend_name: provider for provider in providers}

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
        """Return a recipe of a backend, None for a type it does not offer.

        Raises: ValueError if it offers none at all
        """
        return self._provider(backend).create_recipe(recipe_type, **kwargs)

    def _provider(self, backend: str) -> BackendRecipeProvider:
        if backend not in self._providers:
            there = ", ".join(self._providers) or "none"
            raise ValueError(f"Backend '{backend}' not available. Available: {there}")
        return self._providers[backend]


class _Xnnpack(BackendRecipeProvider):
    @property
    def backend_name(self) -> str:
        return XNNPackRecipeType.get_backend_name()

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        return [*XNNPackRecipeType]

    def create_recipe(self, recipe_type: RecipeType, **kwargs: object) -> ExportRecipe | None:
        return xnnpack_recipe(**kwargs) if recipe_type in [*XNNPackRecipeType] else None


class XNNPackRecipeType(RecipeType):
    """Recipes for the processor, by XNNPACK."""

    FP32 = "xnnpack_fp32"

    @classmethod
    def get_backend_name(cls) -> str:
        """Return the name of the backend."""
        return "xnnpack"


recipe_registry = RecipeRegistry([_Xnnpack()])


def recipe_of(recipe: Any, **kwargs: object) -> ExportRecipe:  # noqa: ANN401 - a RecipeType
    """Return what a backend offers under a type.

    Raises: ValueError if it is no recipe type, or not offered
    """
    if not isinstance(recipe, RecipeType):
        raise ValueError(f"Invalid recipe type: {recipe}")  # noqa: TRY004 - as documented
    backend = recipe.get_backend_name()
    found = recipe_registry.create_recipe(recipe, backend, **kwargs)
    if found is None:
        names = ", ".join(str(one.value) for one in recipe_registry.get_supported_recipes(backend))
        raise ValueError(f"Recipe '{recipe.value}' not supported by '{backend}'; it has {names}")
    return found
