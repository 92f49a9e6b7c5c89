"""The provider interface of export recipes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from compiler.compat.session.recipe import ExportRecipe, RecipeType


class BackendRecipeProvider(ABC):
    """Offers the recipes of one backend."""

    @property
    @abstractmethod
    def backend_name(self) -> str:
        """Return the backend name of its recipe types."""

    @abstractmethod
    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """Return its recipe types."""

    @abstractmethod
    def create_recipe(self, recipe_type: RecipeType, **kwargs: object) -> ExportRecipe | None:
        """Return a recipe, None for an unsupported type.

        Args:
            recipe_type: requested type
            **kwargs: options of that type
        """

    def supports_recipe(self, recipe_type: RecipeType) -> bool:
        """Return whether it offers a type."""
        return recipe_type in self.get_supported_recipes()
