"""The file of the compiler that the exporter shares, loaded by its path without the package."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from .errors import HERE

if TYPE_CHECKING:
    from compiler.exported_modules import method_as_forward, trained_layers
else:
    _PATH = HERE / "compiler" / "exported_modules.py"
    _SPEC: Any = importlib.util.spec_from_file_location("etscope_exported_modules", _PATH)
    _MODULE = importlib.util.module_from_spec(_SPEC)
    _SPEC.loader.exec_module(_MODULE)
    method_as_forward, trained_layers = _MODULE.method_as_forward, _MODULE.trained_layers

__all__ = ["method_as_forward", "trained_layers"]
