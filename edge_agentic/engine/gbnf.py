"""Writes a grammar in GBNF, the notation that llama.cpp reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from edge_agentic.chat.free_text import automaton
from edge_agentic.chat.grammar import Chain, Either, FreeText, Grammar, Json, Many, Maybe, Text
from edge_agentic.core.errors import BadInputError

ROOT: Final = "root"
"""The rule that a text starts with."""
MAX_CHARACTERS: Final = 1 << 20
"""A hundred times what the tools of an agent take."""


def to_gbnf(grammar: Grammar) -> str:
    """The grammar as GBNF; its texts follow the rule `ROOT`.

    Raises:
        BadInputError: it would take more than `MAX_CHARACTERS`.
    """
    writer = _Writer()
    writer.add(ROOT, writer.term(grammar))
    return "\n".join([*writer.rules, _JSON_RULES])


_JSON_RULES: Final = r"""
space ::= " "?
hex ::= [0-9a-fA-F]
high ::= [0-9a-cA-Ce-fE-F] hex | [dD] [0-7]
pair ::= [dD] [89abAB] hex hex "\\u" [dD] [c-fC-F] hex hex
char ::= [^"\\] | "\\" (["\\/bfnrt] | "u" (high hex hex | pair))
string ::= "\"" char* "\"" space
digits ::= [0-9] | [1-9] [0-9]{0,15}
integer ::= "-"? digits space
number ::= "-"? digits ("." [0-9]{1,16})? ([eE] [-+]? ([0-9] | [1-9] [0-9]))? space
boolean ::= ("true" | "false") space
null ::= "null" space
member ::= string ":" space value
object ::= "{" space (member ("," space member)*)? "}" space
array ::= "[" space (value ("," space value)*)? "]" space
value ::= object | array | string | number | boolean | null
""".strip()
"""A rule for each `JsonKind`. No number is too large for a float, no escape half a character."""


class _Writer:
    """Rules for the compound parts of a grammar; a part that recurs shares its rule."""

    def __init__(self) -> None:
        self.rules: list[str] = []
        self._characters = len(_JSON_RULES)
        self._names: dict[int, str] = {}
        self._free_texts: dict[FreeText, str] = {}

    def add(self, name: str, body: str) -> str:
        rule = f"{name} ::= {body}"
        self._characters += len(rule) + 1
        if self._characters > MAX_CHARACTERS:
            raise BadInputError(
                "the offered tools make too large a grammar for constrained calls; offer fewer, "
                "or use --tool-grammar off"
            )
        self.rules.append(rule)
        return name

    def term(self, grammar: Grammar) -> str:
        """What stands for the grammar in a rule: a literal or the name of a rule of its own."""
        if isinstance(grammar, Text):
            return _literal(grammar.text)
        if isinstance(grammar, Json):
            return grammar.kind.value
        if isinstance(grammar, FreeText):
            return self._free_text(grammar)
        # The grammar that is written keeps its parts alive, and so their identities unique.
        name = self._names.get(id(grammar))
        if name is None:
            body = self._body(grammar)
            name = self._names[id(grammar)] = self.add(f"r{len(self.rules)}", body)
        return name

    def _body(self, grammar: Chain | Either | Maybe | Many) -> str:
        if isinstance(grammar, Chain):
            return " ".join(map(self.term, grammar.parts)) or '""'
        if isinstance(grammar, Either):
            return " | ".join(map(self.term, grammar.options))
        mark = "?" if isinstance(grammar, Maybe) else "*"
        return f"({self.term(grammar.part)}){mark}"

    def _free_text(self, free: FreeText) -> str:
        start = self._free_texts.get(free)
        if start is None:
            start = self._free_texts[free] = f"f{len(self._free_texts)}s0"
            states = automaton(free)
            prefix = start[:-1]
            for number, state in enumerate(states):
                others = f"[^{_class(state.moves)}]" if state.moves else "."
                options = [f"{others} {prefix}{state.others}"]
                for target in sorted({to for to in state.moves.values() if to is not None}):
                    letters = (letter for letter, to in state.moves.items() if to == target)
                    options.append(f"[{_class(letters)}] {prefix}{target}")
                self.add(f"{prefix}{number}", f"({' | '.join(options)})?")
        return start


def _class(letters: Iterable[str]) -> str:
    return "".join(f"\\U{ord(letter):08X}" for letter in letters)


def _literal(text: str) -> str:
    plain = "".join(
        char if " " <= char <= "~" and char not in '"\\' else _class(char) for char in text
    )
    return f'"{plain}"'
