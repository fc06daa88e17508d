"""The state of a model as bytes, which are copied, compared and kept by the thousands.

Pickle keeps the shape of the state. What passed through the operations is not taken apart: a
connection that was put into a queue has to come out as the same object, and may not be picklable.
Neither are classes and functions, which in a test are often local.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import Any

from handfast._explore.oracles.operation import Operation

# Equal if they are equal, whichever object they are: else equal states would differ as bytes.
_BY_VALUE = (str, bytes)
_PLAIN = (int, float, complex, bool, type(None))
_NOT_TAKEN_APART = (type, FunctionType, ModuleType)


class ModelStates:
    """Packs the states of the models of one history, and unpacks them."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._atoms: list[Any] = []
        self._by_value: dict[tuple[type, Any], int] = {}
        self._by_identity: dict[int, int] = {}
        for operation in operations:
            for value in (*operation.args, *operation.kwargs.values(), operation.result):
                if type(value) not in _BY_VALUE and type(value) not in _PLAIN:
                    self._add(value)

    def pack(self, model: Any) -> bytes:
        """The state of a model. Equal bytes: equal states."""
        buffer = io.BytesIO()
        _Pickler(buffer, self).dump(model)
        return buffer.getvalue()

    def unpack(self, packed: bytes) -> Any:
        """A new model in this state."""
        return _Unpickler(io.BytesIO(packed), self).load()

    def number(self, value: Any) -> int | None:
        """The number of a value that is not taken apart."""
        if type(value) in _BY_VALUE:
            key = (type(value), value)
            if key not in self._by_value:
                self._by_value[key] = len(self._atoms)
                self._atoms.append(value)
            return self._by_value[key]
        if isinstance(value, _NOT_TAKEN_APART):
            return self._add(value)
        return self._by_identity.get(id(value))

    def value(self, number: int) -> Any:
        return self._atoms[number]

    def _add(self, value: Any) -> int:
        if id(value) not in self._by_identity:
            self._by_identity[id(value)] = len(self._atoms)
            self._atoms.append(value)
        return self._by_identity[id(value)]


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, states: ModelStates) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._states = states

    def persistent_id(self, obj: Any) -> int | None:
        return self._states.number(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, states: ModelStates) -> None:
        super().__init__(file)
        self._states = states

    def persistent_load(self, pid: Any) -> Any:
        return self._states.value(pid)
