"""Formulas of an answer as MathML, which browsers draw without a script. Pure.

Above, the Markdown of answers; below, nothing. It knows the part of LaTeX that models and pages write in running text; a
formula that it cannot read stays as it was written.
"""

from __future__ import annotations

import html
import re
from typing import Any

__all__ = ["add_formulas"]

MAX_CHARS = 2_000
MAX_DEPTH = 30
DELIMITERS = (("$$", "$$", True), (r"\[", r"\]", True), (r"\(", r"\)", False), ("$", "$", False))
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",
    "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "upsilon": "υ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ",
    "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Upsilon": "Υ", "Phi": "Φ", "Psi": "Ψ",
    "Omega": "Ω",
    "varepsilon": "ε", "vartheta": "ϑ", "varphi": "φ", "hbar": "ℏ", "ell": "ℓ", "infty": "∞", "partial": "∂", "nabla": "∇",
    "emptyset": "∅", "degree": "°", "ldots": "…", "dots": "…", "cdots": "⋯", "prime": "′", "angle": "∠",
}  # fmt: skip
OPERATORS = {
    "times": "×", "cdot": "·", "div": "÷", "pm": "±", "mp": "∓", "ast": "∗", "circ": "∘", "leq": "≤", "le": "≤", "geq": "≥",
    "ge": "≥", "neq": "≠", "ne": "≠", "approx": "≈", "sim": "∼", "equiv": "≡", "propto": "∝", "ll": "≪", "gg": "≫",
    "in": "∈", "notin": "∉", "subset": "⊂", "subseteq": "⊆", "cup": "∪", "cap": "∩", "to": "→", "rightarrow": "→",
    "leftarrow": "←", "Rightarrow": "⇒", "Leftrightarrow": "⇔", "iff": "⇔", "implies": "⇒", "mapsto": "↦", "forall": "∀",
    "exists": "∃", "neg": "¬", "land": "∧", "lor": "∨", "wedge": "∧", "vee": "∨", "oplus": "⊕", "otimes": "⊗", "mid": "∣",
    "sum": "∑", "prod": "∏", "int": "∫", "oint": "∮", "langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋",
    "lceil": "⌈", "rceil": "⌉", "{": "{", "}": "}", "|": "‖", "%": "%", "$": "$", "&": "&amp;", "_": "_", "#": "#",
}  # fmt: skip
FUNCTIONS = frozenset((
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log", "ln", "lg",
    "exp", "lim", "max", "min", "sup", "inf", "det", "gcd", "arg",
))  # fmt: skip
SPACES = {",": "0.17em", ";": "0.28em", ":": "0.22em", " ": "0.3em", "quad": "1em", "qquad": "2em"}
ACCENTS = {"hat": "^", "bar": "¯", "overline": "¯", "vec": "→", "dot": "˙", "ddot": "¨", "tilde": "~"}
SETS = dict(zip("NZQRCPE", "ℕℤℚℝℂℙ𝔼", strict=True))
LIMITS = frozenset("∑∏")

_TOKEN = re.compile(r"\\(?:[A-Za-z]+|.)|\d+(?:[.,]\d+)*|\s+|.", re.DOTALL)
_SIGN_OF_MATH = re.compile(r"[\\^_=+<>]|^\s*[A-Za-z]\s*$|[A-Za-z]\s*[-*/(]|\d\s*[*/]\s*\d")


class _UnreadableError(ValueError):
    """A formula with something that is not known here."""


def to_mathml(source: str, *, is_block: bool = False) -> str:
    """A formula as MathML that keeps its source for those who copy it; "" where it cannot be read."""
    if len(source) > MAX_CHARS:
        return ""
    try:
        body = _Reader(_TOKEN.findall(source.strip())).read_row("")
    except _UnreadableError:
        return ""
    label = html.escape(source.strip())
    kind = ' display="block"' if is_block else ""
    return f'<math{kind} aria-label="{label}"><mrow>{body}</mrow></math>' if body else ""


class _Reader:
    """Reads pieces from left to right; every method returns finished MathML."""

    def __init__(self, pieces: list[str]) -> None:
        self._pieces, self._at, self._depth = pieces, 0, 0

    def read_row(self, end: str) -> str:
        """Up to a closing piece, which is taken; "" reads to the end."""
        self._depth += 1
        if self._depth > MAX_DEPTH:  # each level is a call of Python's own
            raise _UnreadableError
        parts: list[str] = []
        while (piece := self._next_piece()) != end:
            if not piece:
                raise _UnreadableError
            parts.append(self._read_scripts(self._read_piece(piece)))
        self._depth -= 1
        return "".join(parts)

    def _next_piece(self) -> str:
        while self._at < len(self._pieces) and self._pieces[self._at].isspace():
            self._at += 1
        self._at += 1
        return self._pieces[self._at - 1] if self._at <= len(self._pieces) else ""

    def _peek_piece(self) -> str:
        at = self._at
        piece = self._next_piece()
        self._at = at
        return piece

    def _read_group(self) -> str:
        """One argument: what stands in braces, or a single piece."""
        piece = self._next_piece()
        if piece in ("", "}", "^", "_"):
            raise _UnreadableError
        if piece.isdigit():  # without braces one digit is meant
            self._pieces[self._at - 1 : self._at] = list(piece)
            return f"<mn>{piece[0]}</mn>"
        return f"<mrow>{self.read_row('}')}</mrow>" if piece == "{" else self._read_piece(piece)

    def _read_words(self) -> str:
        """The argument of \\text as it is written."""
        if self._next_piece() != "{":
            raise _UnreadableError
        words: list[str] = []
        while (piece := self._pieces[self._at] if self._at < len(self._pieces) else "") != "}":
            if not piece or piece == "{" or piece.startswith("\\"):
                raise _UnreadableError
            words.append(piece)
            self._at += 1
        self._at += 1
        return html.escape("".join(words))

    def _read_scripts(self, base: str) -> str:
        """A base with what is raised and lowered beside it; above and below the signs that have limits."""
        scripts: dict[str, str] = {}
        while (piece := self._peek_piece()) in ("^", "_", "'"):
            self._next_piece()
            if piece in scripts or (piece == "'" and "^" in scripts):
                raise _UnreadableError
            scripts["^" if piece == "'" else piece] = "<mo>′</mo>" if piece == "'" else self._read_group()
        if not scripts:
            return base
        has_limits = any(f"<mo>{sign}</mo>" == base for sign in LIMITS) or base == "<mi>lim</mi>"
        lower, upper, both = ("munder", "mover", "munderover") if has_limits else ("msub", "msup", "msubsup")
        name = both if len(scripts) == 2 else lower if "_" in scripts else upper
        return f"<{name}>{base}{scripts.get('_', '')}{scripts.get('^', '')}</{name}>"

    def _read_piece(self, piece: str) -> str:
        if piece.startswith("\\"):
            return self._read_command(piece[1:])
        if piece == "{":
            return f"<mrow>{self.read_row('}')}</mrow>"
        if piece in "}&#%$^_~" or "\ue000" <= piece <= "\uf8ff":
            raise _UnreadableError
        if piece[0].isdigit():
            return f"<mn>{piece}</mn>"
        return f"<mi>{piece}</mi>" if piece.isalpha() else f"<mo>{html.escape('−' if piece == '-' else piece)}</mo>"

    def _read_command(self, name: str) -> str:
        if name in GREEK:
            return f"<mi>{GREEK[name]}</mi>"
        if name in OPERATORS:
            return f"<mo>{OPERATORS[name]}</mo>"
        if name in FUNCTIONS:
            return f"<mi>{name}</mi>"
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}"/>'
        match name:
            case "frac" | "dfrac" | "tfrac":
                return f"<mfrac>{self._read_group()}{self._read_group()}</mfrac>"
            case "binom":
                return f'<mo>(</mo><mfrac linethickness="0">{self._read_group()}{self._read_group()}</mfrac><mo>)</mo>'
            case "sqrt" if self._peek_piece() == "[":
                self._next_piece()
                index = self.read_row("]")
                return f"<mroot>{self._read_group()}<mrow>{index}</mrow></mroot>"
            case "sqrt":
                return f"<msqrt>{self._read_group()}</msqrt>"
            case "text" | "mathrm" | "operatorname" | "textrm" | "mathit":
                return f"<mtext>{self._read_words()}</mtext>"
            case "left" | "right" | "big" | "Big":
                if (piece := self._next_piece()) == ".":  # a side without a sign
                    return ""
                sign = OPERATORS.get(piece[1:], "") if piece.startswith("\\") else html.escape(piece)
                if not sign or sign.isalnum():
                    raise _UnreadableError
                return f'<mo stretchy="true">{sign}</mo>'
            case "mathbb":
                return f"<mi>{''.join(SETS.get(letter, letter) for letter in self._read_words())}</mi>"
            case "mathbf" | "mathcal" | "boldsymbol":
                return self._read_group()
            case "displaystyle" | "limits" | "nolimits":
                return ""
        if name in ACCENTS:
            return f'<mover accent="true">{self._read_group()}<mo>{ACCENTS[name]}</mo></mover>'
        raise _UnreadableError


def add_formulas(maker: Any) -> None:
    """Teach a MarkdownIt to read formulas before the marks of Markdown inside them mean anything."""
    maker.inline.ruler.before("escape", "formula", _read_formula)
    maker.add_render_rule("formula", lambda _renderer, tokens, index, _options, _env: str(tokens[index].content))


def _read_formula(state: Any, silent: bool) -> bool:
    source, start = state.src, state.pos
    for opening, closing, is_block in DELIMITERS:
        if not source.startswith(opening, start):
            continue
        begin = start + len(opening)
        end = source.find(closing, begin)
        inside = source[begin:end] if end > begin else ""
        if not inside or (opening == "$" and not _is_formula(inside, source[end + 1 : end + 2])):
            return False
        if not (mathml := to_mathml(inside, is_block=is_block)):
            return False
        if not silent:
            state.push("formula", "", 0).content = mathml
        state.pos = end + len(closing)
        return True
    return False


def _is_formula(inside: str, after: str) -> bool:
    """Whether what stands between two dollar signs is mathematics and not two prices."""
    is_tight = not inside[0].isspace() and not inside[-1].isspace() and not after.isdigit()
    return is_tight and "\n" not in inside and _SIGN_OF_MATH.search(inside) is not None
