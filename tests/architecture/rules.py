"""Rules about the source that import contracts cannot see, each a question to one syntax tree."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

PACKAGES = ("portal", "quotas", "billing", "jobs", "agent")

CATCH_ALL_NAMES = {"util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"}
DISPATCHES = {"delay", "apply_async", "send_task"}
IMPURE_MODULES = {"os", "secrets", "socket", "subprocess", "time", "uuid"}
CLOCK_READINGS = {"now", "utcnow", "today"}


@dataclass(frozen=True)
class Rule:
    name: str
    covers: Callable[[PurePosixPath], bool]
    breaches: Callable[[ast.Module], Iterator[ast.AST]]

    def broken_by(self, path: PurePosixPath, source: str) -> list[str]:
        if not self.covers(path):
            return []
        return [
            f"{path}:{getattr(node, 'lineno', 1)}: {self.name}"
            for node in self.breaches(ast.parse(source))
        ]


def _queries(tree: ast.Module) -> Iterator[ast.AST]:
    return (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"objects", "_default_manager"}
    )


def _dispatches(tree: ast.Module) -> Iterator[ast.AST]:
    return (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in DISPATCHES
    )


def _environment_readings(tree: ast.Module) -> Iterator[ast.AST]:
    naming = {
        id(part) for call in ast.walk(tree) if _names_the_settings(call) for part in ast.walk(call)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            reads = node.module == "os" and any(
                alias.name in {"environ", "getenv"} for alias in node.names
            )
        else:
            reads = _is_attribute(node, "os", {"environ", "getenv"}) and id(node) not in naming
        if reads:
            yield node


def _names_the_settings(node: ast.AST) -> bool:
    """`os.environ.setdefault("DJANGO_SETTINGS_MODULE", ...)` of an entry point."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "setdefault"
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == "DJANGO_SETTINGS_MODULE"
    )


def _workshop_imports(tree: ast.Module) -> Iterator[ast.AST]:
    return (
        node
        for node in ast.walk(tree)
        if any(name.split(".")[0] in {"tests", "benchmarks"} for name in _imported(node))
    )


def _model_lookups(tree: ast.Module) -> Iterator[ast.AST]:
    return (node for node in ast.walk(tree) if _is_attribute(node, "apps", {"get_model"}))


def _impurities(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        imports = any(name.split(".")[0] in IMPURE_MODULES for name in _imported(node))
        reads_clock = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in CLOCK_READINGS
        )
        rolls_dice = (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "random"
            and node.attr != "Random"
        )
        if imports or reads_clock or rolls_dice:
            yield node


def _whole_module(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree


def _is_attribute(node: ast.AST, owner: str, names: set[str]) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == owner
        and node.attr in names
    )


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom():
            return [node.module or ""]
        case _:
            return []


def _in_folder(*names: str) -> Callable[[PurePosixPath], bool]:
    return lambda path: bool(set(names) & set(path.parts[:-1]))


def _outside(*places: str) -> Callable[[PurePosixPath], bool]:
    return lambda path: not any(path.is_relative_to(place) for place in places)


def _has_catch_all_name(path: PurePosixPath) -> bool:
    return bool(CATCH_ALL_NAMES & {*path.parts, path.stem})


RULES = (
    Rule("views ask selectors, never the ORM", _in_folder("api", "web"), _queries),
    Rule(
        "tasks are sent by the outbox alone",
        _outside("portal/core/outbox.py", "portal/celery.py"),
        _dispatches,
    ),
    Rule(
        "only the configuration reads the environment",
        _outside("portal/config.py", "portal/cli", "agent/main.py", "agent/crash.py"),
        _environment_readings,
    ),
    Rule("a module's name says what lives there", _has_catch_all_name, _whole_module),
    Rule("the product imports no tests and no benchmarks", lambda _: True, _workshop_imports),
    Rule(
        "models are imported, not looked up",
        lambda path: "migrations" not in path.parts,
        _model_lookups,
    ),
    Rule(
        "pure code is given time, ids and chance",
        _in_folder("domain", "scheduling"),
        _impurities,
    ),
)
