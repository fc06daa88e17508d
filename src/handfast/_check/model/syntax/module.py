"""`Module` and `Class`: functions by name, methods with inheritance, parents of nodes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from handfast._check.model.syntax.ancestors import above
from handfast._check.model.syntax.children import LEAVES, children
from handfast._check.model.syntax.function import AnyDef, Function
from handfast._check.model.syntax.names import Names
from handfast._check.source import Source

if TYPE_CHECKING:
    from handfast._check.model.syntax.project import Project


class Class:
    """A class, with its own methods."""

    def __init__(self, module: Module, node: ast.ClassDef, qualname: str) -> None:
        self.module = module
        self.node = node
        self.qualname = qualname
        self.methods: dict[str, Function] = {}
        self.memo: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<Class {self.qualname}>"

    @property
    def name(self) -> str:
        return self.node.name

    @cached_property
    def base_names(self) -> tuple[str, ...]:
        """The full names of its bases; empty for a base that is no name."""
        return tuple(self.module.names.resolve(base) for base in self.node.bases)

    @cached_property
    def lineage(self) -> tuple[Class, ...]:
        """The class and its known bases, the nearest first."""
        found: list[Class] = []
        todo: list[Class] = [self]
        # A class may be among its own bases, where two files import each other.
        while todo:
            each = todo.pop()
            if each not in found:
                found.append(each)
                todo += reversed(each._bases)
        return tuple(found)

    @cached_property
    def classes_in_file(self) -> tuple[Class, ...]:
        """The class and those of its bases that are in the same file; no other file is read."""
        found: dict[Class, None] = {}
        todo: list[Class] = [self]
        while todo:
            each = todo.pop()
            if each not in found:
                found[each] = None
                bases = (self.module.classes.get(name) for name in each.base_names)
                todo += reversed([base for base in bases if base is not None])
        return tuple(found)

    @cached_property
    def is_complete(self) -> bool:
        """Whether all of its bases are known: an unknown one may end the tasks of the class."""
        return all(each._knows_its_bases for each in self.lineage)

    @property
    def _knows_its_bases(self) -> bool:
        # A base that is no name (a call, a subscript) has the name "", and counts as harmless:
        # `Generic[T]` is by far the most frequent.
        return len(self._bases) == sum(name not in _HARMLESS for name in self.base_names)

    @cached_property
    def all_methods(self) -> dict[str, Function]:
        """Its methods and the inherited ones, by name."""
        found: dict[str, Function] = {}
        for each in self.lineage:
            for name, method in each.methods.items():
                found.setdefault(name, method)
        return found

    def method(self, name: str) -> Function | None:
        """A method, its own or inherited. For one of its own no other file is read."""
        return self.methods.get(name) or self.all_methods.get(name)

    @cached_property
    def _bases(self) -> list[Class]:
        found = (self.module.find_class(name) for name in self.base_names)
        return [each for each in found if each is not None and each is not self]

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every function in whose body `self` is of this class: methods, and functions inside them."""
        return tuple(self.module.functions_of(self))


# Bases that have no method which could end a task.
_HARMLESS = {
    "object", "abc.ABC", "ABC", "typing.Protocol", "Protocol", "typing.Generic", "Generic",
    "enum.Enum", "Enum", "NamedTuple", "typing.NamedTuple", "TypedDict", "typing.TypedDict", "",
}  # fmt: skip


_INNER = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef})


@dataclass(slots=True, eq=False)
class _Inside:
    """The position of the walk over a file: the class, the function, and whose nodes these are."""

    prefix: str
    owner: Class | None
    outer: Function | None
    nodes: list[ast.AST]


class Module:
    """One file."""

    def __init__(self, source: Source, name: str, project: Project | None = None) -> None:
        self.source = source
        self.path = source.path
        self.name = name
        self.project = project
        # Relative imports start at the package: for `__init__.py` that is the module itself.
        package = name if source.path.endswith("__init__.py") else name.rpartition(".")[0]
        self.names = Names(source.tree, package)
        self.functions: list[Function] = []
        self.classes: dict[str, Class] = {}
        self.parents: dict[ast.AST, ast.AST] = {}
        self._by_node: dict[ast.AST, Function] = {}
        self.memo: dict[Any, Any] = {}
        self._outside: list[ast.AST] = []
        self._collect(source.tree)

    def __repr__(self) -> str:
        return f"<Module {self.name}>"

    @cached_property
    def body(self) -> Function:
        """The code that runs when the module is imported, as a function."""
        node = ast.FunctionDef(
            name="<module>",
            args=ast.arguments([], [], None, [], [], None, []),
            body=self.source.tree.body,
            decorator_list=[],
            lineno=1,
            col_offset=0,
        )
        body = Function(self, node, "<module>", None, None)
        body.nodes = self._outside
        return body

    def function_of(self, node: AnyDef) -> Function:
        return self._by_node[node]

    def function_around(self, node: ast.AST) -> Function:
        """The innermost function around a node; the module's body if there is none."""
        around = (up for up in above(self.parents, node) if up in self._by_node)
        up = next(around, None)
        return self.body if up is None else self._by_node[up]

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The statement that a node is a part of."""
        if isinstance(node, ast.stmt):
            return node
        return next(up for up in above(self.parents, node) if isinstance(up, ast.stmt))

    def find_class(self, name: str) -> Class | None:
        """The class of this full name, here or elsewhere in the project."""
        if name in self.classes:
            return self.classes[name]
        return self.project.find_class(name) if self.project is not None else None

    def find_function(self, name: str) -> Function | None:
        """A function of this module by its plain name."""
        return self._plain.get(name)

    def functions_of(self, klass: Class) -> list[Function]:
        """The functions in whose bodies `self` is of this class."""
        return self._by_class[klass]

    @cached_property
    def _by_class(self) -> dict[Class | None, list[Function]]:
        found: defaultdict[Class | None, list[Function]] = defaultdict(list)
        for function in self.functions:
            found[function.klass].append(function)
        return found

    @cached_property
    def _plain(self) -> dict[str, Function]:
        return {
            function.name: function
            for function in self.functions
            if function.owner is None and function.outer is None
        }

    def _collect(self, tree: ast.Module) -> None:
        """Find functions, classes, parents and the nodes of each function, in source order."""
        # One walk for all of them saves time. A list instead of recursion, because generated code
        # can be nested deeper than the stack allows.
        inside = _Inside("", None, None, self._outside)
        todo: list[Any] = []
        self._below(tree, tree.body, todo)
        parents = self.parents
        keep = inside.nodes.append
        while todo:
            node = todo.pop()
            kind = type(node)
            if kind is _Inside:
                inside = node
                keep = inside.nodes.append
                continue
            keep(node)
            if kind in LEAVES:
                continue
            if kind in _INNER:
                todo.append(inside)  # where the walk continues after the function
                self._enter(node, inside, todo)
                continue
            below = children(node)
            for child in below:
                parents[child] = node
            todo += below[::-1]

    def _enter(self, node: AnyDef | ast.ClassDef, inside: _Inside, todo: list[Any]) -> None:
        """Put the parts of a function or a class on the list. Its decorators belong to the function
        around it; its arguments, and the body of a class, to no function."""
        decorators: list[ast.expr] = []
        if isinstance(node, ast.ClassDef):
            owner = Class(self, node, f"{inside.prefix}{node.name}")
            # By the plain name, and the first wins: classes inside functions are rarely bases.
            self.classes.setdefault(node.name, owner)
            within = _Inside(f"{owner.qualname}.", owner, inside.outer, [])
            self._below(node, [*node.bases, *node.keywords, *node.body], todo)
            todo.append(within)
        else:
            function = self._add_function(node, inside.prefix, inside.owner, inside.outer)
            prefix = f"{function.qualname}."
            body = [node.body] if isinstance(node, ast.Lambda) else node.body
            self._below(node, body, todo)
            todo.append(_Inside(prefix, None, function, function.nodes))
            returns = getattr(node, "returns", None)
            self._below(node, [node.args] if returns is None else [node.args, returns], todo)
            todo.append(_Inside(prefix, None, function, []))
        if not isinstance(node, ast.Lambda):
            decorators = node.decorator_list
        self._below(node, decorators, todo)
        todo.append(inside)

    def _below(self, node: ast.AST, parts: Sequence[ast.AST], todo: list[Any]) -> None:
        for part in parts:
            self.parents[part] = node
        todo += parts[::-1]

    def _add_function(
        self, node: AnyDef, prefix: str, owner: Class | None, outer: Function | None
    ) -> Function:
        name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        function = Function(self, node, f"{prefix}{name}", owner, outer)
        self.functions.append(function)
        self._by_node[node] = function
        if outer is not None:
            outer.inner.append(function)
        if owner is not None and not isinstance(node, ast.Lambda):
            owner.methods[name] = function
        return function

    def forget_others(self) -> None:
        """Drop all answers, which may refer to other modules, and keep the tree."""
        self.memo.clear()
        for function in (self.body, *self.functions):
            function.memo.clear()
        owners = {each.owner for each in self.functions if each.owner is not None}
        for klass in owners | set(self.classes.values()):
            klass.memo.clear()
            for name in ("lineage", "is_complete", "all_methods", "_bases"):
                klass.__dict__.pop(name, None)

    def forget(self) -> None:
        """Drop all references, so that the tree is freed at once.

        Otherwise it waits for the garbage collector, for which a tree is a million objects.
        """
        for each in (*self.functions, *self.classes.values(), self):
            each.__dict__.clear()

    def calls(self) -> Iterator[tuple[Function, ast.Call]]:
        """Every call, with the function around it."""
        for function in (self.body, *self.functions):
            for call in function.calls:
                yield function, call
