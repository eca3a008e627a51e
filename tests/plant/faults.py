# SPDX-License-Identifier: BSD-3-Clause
"""Lists the faults that can be planted in the product's C code: small changes of one place
each, found in clang's syntax tree, so that the changed file compiles.

KINDS names the kinds of faults; OF_NO_EFFECT the places that are left out, with the reasons.
"""

import bisect
import collections
import concurrent.futures
import dataclasses
import functools
import hashlib
import os
import re
import signal
from pathlib import Path

FOLDERS = ("poptrie", "tap-bridge", "fpm-dataplane")

KINDS = {
    "condition": "a condition, or one operand of && or ||, is inverted",
    "bound": "a comparison includes or excludes its bound; + 1 or - 1 is dropped",
    "counter": "a counter is not incremented or decremented",
    "order": "an atomic access is relaxed, or a fence is dropped",
    "free": "memory, a descriptor or a reference is not released",
    "reason": "a packet is dropped or punted for another reason",
    "pointer": "an assignment to a pointer in memory is dropped: it stays stale",
    "statement": "a call, or an assignment in memory, is dropped",
    "constant": "an integer, an enumerator or a field is another one of its type",
}

OF_NO_EFFECT = {
    "assert": "inside assert() and static_assert(): they check, and compute nothing",
    "log": "the text of the log, and conditions that decide only what is logged",
    "hint": "hints to the hardware or the kernel that change the speed alone",
    "macro": "inside a macro's definition or arguments: the tree does not say where",
}

# Statements that these functions make are faults of the kind `counter`, `free` or `pointer`.
COUNTS = re.compile(
    r"count(er)?_(add|drop|vlan|vlans|in|reason)|count_\w+|table_(add|used|gone|refuse)|"
    r"atomic_fetch_(add|sub)(_explicit)?|uatomic_(inc|dec|add|sub)"
)
FREES = re.compile(
    r"(\w+_)?(free|freev|destroy|close|closedir|fclose|decref|unref|retire|release|"
    r"munmap|unmap|unregister|call_rcu|give_back|del|forget)(_\w+)?"
)
POINTS = re.compile(
    r"rcu_(assign_pointer|set_pointer)|atomic_store(_explicit)?|" r"CMM_STORE_SHARED"
)
LOGS = re.compile(r"log_\w+|rte_log|perror|syslog")
HINTS = re.compile(
    r"\w*prefetch\w*|\w*madvise|rte_pause|caa_cpu_relax|_mm_pause|"
    r"pthread_setname_np|malloc_trim|mbind|setpriority|posix_fadvise"
)
ASSERTS = re.compile(
    r"assert|static_assert|_Static_assert|ASSERT_\w+|RTE_ASSERT|"
    r"RTE_BUILD_BUG_ON|BUILD_BUG_ON"
)


def effect_of_call(name, otherwise):
    """Return the key in OF_NO_EFFECT for a call of a function or macro; else `otherwise`."""
    if ASSERTS.fullmatch(name):
        return "assert"
    return "log" if LOGS.fullmatch(name) else otherwise


# The enumerations of the reasons for which packets leave the fast path.
REASONS = re.compile(r"(DROP|PUNT)_\w+")
ORDERS = re.compile(
    rb"\b(memory_order_|__ATOMIC_)(?:release|acquire|consume|acq_rel|seq_cst)\b", re.I
)
RELAXED = {b"memory_order_": b"memory_order_relaxed", b"__ATOMIC_": b"__ATOMIC_RELAXED"}
WIDER = {b"<": b"<=", b"<=": b"<", b">": b">=", b">=": b">"}
COMPARED = {*WIDER, b"==", b"!="}
LOGICAL = {b"&&", b"||"}


@dataclasses.dataclass(frozen=True, order=True)
class Fault:
    """One change: the octets `start` to `end` of `file` become `new`."""

    file: str
    start: int
    end: int
    kind: str
    new: bytes
    line: int
    last_line: int
    function: str

    def folder(self):
        """Return the folder for which the fault counts."""
        return os.path.dirname(self.file)

    def planted(self, text):
        """Return the file's text with the fault. The number of lines does not change."""
        old = text[self.start : self.end]
        new = self.new + b"\n" * max(0, old.count(b"\n") - self.new.count(b"\n"))
        return text[: self.start] + new + text[self.end :]

    def name(self):
        """Return a short name. It is the same while the change and the text around it are the
        same."""
        text = f"{self.file}:{self.function}:{self.line}:{self.start}:{self.kind}:".encode()
        return hashlib.sha256(text + self.new).hexdigest()[:8]


def sources(root):
    """Return the C files of the product, relative to `root`."""
    found = [p for f in FOLDERS for p in Path(root, f).rglob("*.c")]
    return sorted(str(p.relative_to(root)) for p in found)


def headers(root):
    """Return the headers of the product."""
    found = [p for f in FOLDERS for s in ("*.h", "*.def") for p in Path(root, f).rglob(s)]
    return sorted(str(p.relative_to(root)) for p in found)


def of_tree(root, flags, files=None):
    """Return (faults, {reason of OF_NO_EFFECT: number left out}), sorted, of all `files`.

    flags   of the compiler, as the Makefile has them; `root` is where they are relative to
    files   C files; their headers are searched too. None: all files of the product
    """
    files = sources(root) if files is None else files
    faults, left_out, broken = set(), set(), []
    pool = concurrent.futures.ProcessPoolExecutor(os.cpu_count(), initializer=_ignore_keys)
    try:
        look = functools.partial(of_file, str(root), tuple(flags))
        for path, (found, without, error) in zip(files, pool.map(look, files, chunksize=4)):
            faults |= found
            left_out |= without
            broken += [f"{path}: {error}"] if error else []
    finally:
        pool.shutdown(cancel_futures=True)
    if broken:
        raise ValueError("clang cannot parse: " + "; ".join(broken))
    # A place that several C files see with different types counts once.
    return sorted(faults), collections.Counter(why for *_, why in left_out)


def _ignore_keys():
    """Ignore Ctrl-C: the parent process handles it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)


def flags_of(path, flags):
    """Return the flags for clang, which does not know `#pragma GCC target` of the files for AVX."""
    words = [f for f in flags if not f.startswith("-W")]
    if "avx" in path:
        words += ["-mavx2", "-mbmi", "-mbmi2", "-mpopcnt"]
    if "avx512" in path:
        words += [
            "-mavx512f",
            "-mavx512bw",
            "-mavx512dq",
            "-mavx512vl",
            "-mavx512vpopcntdq",
        ]
    return words


def of_file(root, flags, path):
    """Return (faults, {(file, offset, reason)} left out, clang's messages) of a file and its
    headers."""
    from clang import cindex  # here, because only `make plant` needs the package

    os.chdir(root)
    unit = cindex.Index.create().parse(
        path,
        flags_of(path, flags),
        options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD,
    )
    errors = [d.spelling for d in unit.diagnostics if d.severity >= d.Error]
    if errors:
        return set(), set(), errors[0]
    tree = Tree(cindex)
    tree.functions(unit.cursor)
    return tree.faults, tree.left_out, ""


class Text:
    """The octets of a file, and the places of its comments and strings."""

    def __init__(self, path):
        self.octets = Path(path).read_bytes()
        self.starts = [0, *(m.end() for m in re.finditer(rb"\n", self.octets))]
        pattern = rb'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*'
        blank = lambda m: re.sub(rb"[^\n]", b" ", m[0])  # noqa: E731
        # The result is as long as the file, so that offsets are the same.
        self.code = re.sub(pattern, blank, self.octets, flags=re.S)
        self.macros = []  # sorted (start, end, name) of the macros that are used

    def line(self, offset):
        """Return the number of the line that has the offset."""
        return bisect.bisect_right(self.starts, offset)


class Tree:
    """Collects the faults of a translation unit."""

    def __init__(self, cindex):
        self.kind = cindex.CursorKind
        self.type = cindex.TypeKind
        self.texts, self.faults, self.left_out = {}, set(), set()
        self.function, self.text, self.file, self.body = "", None, "", (0, 0)
        kind = self.kind
        self.look = {
            kind.IF_STMT: self.if_,
            kind.CONDITIONAL_OPERATOR: self.choice,
            kind.RETURN_STMT: self.return_,
            kind.BINARY_OPERATOR: self.binary,
            kind.INTEGER_LITERAL: self.integer,
            kind.DECL_REF_EXPR: self.name,
            kind.MEMBER_REF_EXPR: self.member,
        }
        self.blocks = {
            kind.COMPOUND_STMT,
            kind.IF_STMT,
            kind.FOR_STMT,
            kind.WHILE_STMT,
            kind.DO_STMT,
            kind.CASE_STMT,
            kind.DEFAULT_STMT,
            kind.LABEL_STMT,
        }
        self.wrappers = {kind.UNEXPOSED_EXPR, kind.PAREN_EXPR, kind.CSTYLE_CAST_EXPR}

    # -- places --

    def text_of(self, name):
        """Return the Text of a file of the product, or None for another file."""
        if name not in self.texts:
            ours = not os.path.isabs(name) and name.split("/")[0] in FOLDERS
            self.texts[name] = Text(name) if ours else None
        return self.texts[name]

    def functions(self, unit):
        """Walk each function that a file of the product defines."""
        functions, macros = [], collections.defaultdict(list)
        for cursor in unit.get_children():
            place = cursor.location.file
            name = os.path.normpath(place.name) if place else ""
            if not name or self.text_of(name) is None:
                continue
            if cursor.kind == self.kind.MACRO_INSTANTIATION:
                at = cursor.extent
                macros[name].append((at.start.offset, at.end.offset, cursor.spelling))
            elif cursor.kind == self.kind.FUNCTION_DECL and cursor.is_definition():
                functions.append((name, cursor))
        for name, found in macros.items():
            self.texts[name].macros = sorted(found)
        for name, cursor in functions:
            self.file, self.text = name, self.texts[name]
            self.function = cursor.spelling
            body = [c for c in cursor.get_children() if c.kind == self.kind.COMPOUND_STMT]
            if body:
                self.body = self.span(body[0])
                self.walk(body[0], None)
                self.orders()

    def span(self, cursor):
        """Return (start, end) of a cursor in its file."""
        at = cursor.extent
        return at.start.offset, at.end.offset

    def octets(self, span):
        """Return the text of the span."""
        return self.text.octets[span[0] : span[1]]

    def code(self, span):
        """Return the text of the span without comments."""
        return self.text.code[span[0] : span[1]].strip()

    def macro_around(self, span):
        """Return the name of the outermost macro of which `span` is a part, but not the whole; else
        None."""
        after = bisect.bisect_right(self.text.macros, (span[0], 1 << 40, ""))
        for start, end, name in self.text.macros[max(0, after - 12) : after]:
            if (
                start <= span[0]
                and span[1] <= end
                and (start, end) != span
                and "(" in str(self.octets((start, end)), "latin-1")
            ):
                return name
        return None

    # -- the collection --

    def add(self, kind, span, new):
        """Add a fault, unless it changes nothing or its place is inside a macro."""
        if self.octets(span) == new:
            return  # the type has no other value
        macro = self.macro_around(span)
        if macro is not None:
            self.leave(span, effect_of_call(macro, "macro"))
            return
        line, last = self.text.line(span[0]), self.text.line(max(span[0], span[1] - 1))
        self.faults.add(
            Fault(self.file, *span, kind, bytes(new), line, last, self.function)
        )

    def leave(self, span, why):
        """Count a place that is left out."""
        self.left_out.add((self.file, span[0], why))

    # -- the walk --

    def walk(self, cursor, parent, mute=None):
        """Walk a cursor and all below it. mute: the reason why no fault there has an effect."""
        kind = cursor.kind
        if kind == self.kind.CALL_EXPR and LOGS.fullmatch(cursor.spelling or ""):
            mute = "log"
        elif self.says_only(cursor):
            mute = "log"
        elif kind in (self.kind.STATIC_ASSERT,):
            mute = "assert"
        look = self.look.get(kind)
        children = list(cursor.get_children())
        if mute:
            if look:
                self.leave(self.span(cursor), mute)
        else:
            if parent is not None and self.is_statement(cursor, parent):
                self.statement(cursor, children)
            if look:
                look(cursor, children)
        for n, child in enumerate(children):
            if kind == self.kind.CASE_STMT and n == 0:
                continue  # a case label: a changed value would exist twice
            self.walk(child, cursor, mute)

    def says_only(self, cursor):
        """Return True if this is an `if` whose branches only log."""
        if cursor.kind != self.kind.IF_STMT:
            return False
        branches = list(cursor.get_children())[1:]
        return bool(branches) and all(map(self.only_logs, branches))

    def only_logs(self, cursor):
        """Return True if this is a call that logs, or a block of such calls."""
        if cursor.kind == self.kind.COMPOUND_STMT:
            children = list(cursor.get_children())
            return bool(children) and all(map(self.only_logs, children))
        name = re.match(rb"(?:\(void\)\s*)?(\w+)\s*\(", self.code(self.span(cursor)))
        return (
            bool(name) and bool(LOGS.fullmatch(name[1].decode())) or self.says_only(cursor)
        )

    def is_statement(self, cursor, parent):
        """Return True if the expression is a statement."""
        if parent.kind not in self.blocks or not cursor.kind.is_expression():
            return False
        children = list(parent.get_children())
        if parent.kind == self.kind.COMPOUND_STMT:
            return True
        if parent.kind in (self.kind.IF_STMT, self.kind.WHILE_STMT, self.kind.CASE_STMT):
            return cursor != children[0]
        if parent.kind == self.kind.FOR_STMT:
            return cursor == children[-1]
        return parent.kind != self.kind.DO_STMT or cursor == children[0]

    # -- kinds --

    def statement(self, cursor, children):
        """Remove a statement. The kind of the fault depends on the effect of the statement."""
        span = self.span(cursor)
        code = self.code(span)
        called = re.match(rb"(?:\(void\)\s*)?(\w+)\s*\(", code)
        if called:
            name = called[1].decode()
            if ASSERTS.fullmatch(name) or LOGS.fullmatch(name) or HINTS.fullmatch(name):
                self.leave(span, effect_of_call(name, "hint"))
                return
            if re.fullmatch(r"(atomic_(thread|signal)_fence|cmm_\w*mb|rte_\w*mb)", name):
                kind = "order"
            elif COUNTS.fullmatch(name):
                kind = "counter"
            elif FREES.fullmatch(name):
                kind = "free"
            elif POINTS.fullmatch(name) and self.points(children):
                kind = "pointer"
            else:
                kind = "statement"
            self.add(kind, span, b"(void)0")
        elif cursor.kind == self.kind.UNARY_OPERATOR and re.search(rb"\+\+|--", code):
            if self.in_memory(children[0]):
                self.add("counter", span, b"(void)0")
        elif cursor.kind == self.kind.COMPOUND_ASSIGNMENT_OPERATOR:
            if self.in_memory(children[0]):
                sums = self.between(children[0], children[1]) in (b"+=", b"-=")
                self.add("counter" if sums else "statement", span, b"(void)0")
        elif cursor.kind == self.kind.BINARY_OPERATOR:
            if self.between(*children[:2]) == b"=" and self.in_memory(children[0]):
                kind = children[0].type.get_canonical().kind
                self.add(
                    "pointer" if kind == self.type.POINTER else "statement",
                    span,
                    b"(void)0",
                )

    def points(self, children):
        """Return True if the first argument of an atomic store is the address of a pointer."""
        for child in children:
            kind = child.type.get_canonical()
            if kind.kind == self.type.POINTER and "*" in kind.get_pointee().spelling:
                return True
        return False

    def in_memory(self, cursor):
        """Return True if an expression names an object that other functions see, not a local
        variable."""
        while cursor.kind in self.wrappers:
            inner = list(cursor.get_children())
            if not inner:
                return False
            cursor = inner[-1]
        if cursor.kind == self.kind.DECL_REF_EXPR:
            there = cursor.referenced
            return there is not None and not (
                there.semantic_parent
                and there.semantic_parent.kind == self.kind.FUNCTION_DECL
            )
        return True

    def between(self, left, right):
        """Return the operator between two operands; b"" if a macro hides it."""
        return self.code((left.extent.end.offset, right.extent.start.offset))

    def if_(self, cursor, children):
        """Invert the condition of an `if`."""
        if self.octets(self.span(cursor)).startswith(b"if"):
            self.invert(children[0])

    def choice(self, cursor, children):
        """Invert the condition of a `?:`."""
        if self.between(*children[:2]) == b"?":
            self.invert(children[0])

    def return_(self, cursor, children):
        """Invert the result of a function that returns a truth value."""
        if not children:
            return
        value = self.bare(children[0])
        parts = list(value.get_children())
        if (
            value.kind == self.kind.BINARY_OPERATOR
            and self.between(*parts) in COMPARED | LOGICAL
        ):
            self.invert(children[0])

    def bare(self, cursor):
        """Return an expression without the conversions and parentheses around it."""
        while cursor.kind in (self.kind.UNEXPOSED_EXPR, self.kind.PAREN_EXPR):
            inner = list(cursor.get_children())
            if len(inner) != 1:
                break
            cursor = inner[0]
        return cursor

    def invert(self, cursor):
        """Invert a condition, and each operand of it."""
        span = self.span(cursor)
        self.add("condition", span, b"!(" + self.octets(span) + b")")
        whole = self.bare(cursor)
        parts = list(whole.get_children())
        if whole.kind == self.kind.BINARY_OPERATOR and self.between(*parts) in LOGICAL:
            for part in parts:
                self.invert(part)

    def binary(self, cursor, children):
        """Change a comparison, or a sum with 1."""
        left, right = children
        sign = self.between(left, right)
        at = self.text.code.find(sign, left.extent.end.offset, right.extent.start.offset)
        if sign in WIDER:
            self.add("bound", (at, at + len(sign)), WIDER[sign])
        elif sign in (b"+", b"-") and self.code(self.span(right)) in (b"1", b"1u"):
            self.add("bound", (left.extent.end.offset, right.extent.end.offset), b"")

    def integer(self, cursor, _):
        """Add 1 to an integer."""
        span = self.span(cursor)
        number = re.fullmatch(rb"(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)", self.octets(span))
        if number:
            value = int(number[1], 0 if number[1][:2] in (b"0x", b"0X") else 10)
            if number[1][:1] == b"0" and len(number[1]) > 1 and number[1][1:2] not in b"xX":
                value = int(number[1], 8)
            self.add("constant", span, b"%d%s" % (value + 1, number[2]))

    def name(self, cursor, _):
        """Replace an enumerator by another of the same enumeration."""
        there = cursor.referenced
        if there is None or there.kind != self.kind.ENUM_CONSTANT_DECL:
            return
        span = (cursor.location.offset, cursor.location.offset + len(cursor.spelling))
        if self.octets(span) != cursor.spelling.encode():
            self.leave(span, "macro")
            return
        is_reason = bool(REASONS.fullmatch(cursor.spelling))
        place = there.semantic_parent.location.file
        if place is None or self.text_of(os.path.normpath(place.name)) is None:
            return  # the enumeration is of another project
        sort = cursor.spelling.split("_")[0] + "_" if is_reason else ""
        others = [c.spelling for c in there.semantic_parent.get_children()]
        others = [o for o in others if o.startswith(sort) and o != "PUNT_before_first"]
        self.add("reason" if is_reason else "constant", span, self.other(others, cursor))

    def member(self, cursor, _):
        """Replace a field by its neighbor of the same type."""
        there = cursor.referenced
        if there is None or there.kind != self.kind.FIELD_DECL or not cursor.spelling:
            return
        span = (cursor.location.offset, cursor.location.offset + len(cursor.spelling))
        if self.octets(span) != cursor.spelling.encode():
            self.leave(span, "macro")
            return
        place = there.location.file
        if place is None or self.text_of(os.path.normpath(place.name)) is None:
            return
        spelled = there.type.spelling
        fields = there.semantic_parent.get_children()
        names = [
            f.spelling
            for f in fields
            if f.kind == self.kind.FIELD_DECL and f.type.spelling == spelled and f.spelling
        ]
        if len(names) > 1 and cursor.spelling in names:
            self.add("constant", span, self.other(names, cursor))

    @staticmethod
    def other(names, cursor):
        """Return the next name; for the last name, the previous."""
        names = list(dict.fromkeys(names))
        if cursor.spelling not in names or len(names) < 2:
            return cursor.spelling.encode()
        at = names.index(cursor.spelling)
        return names[at + 1 if at + 1 < len(names) else at - 1].encode()

    def orders(self):
        """Relax the orders of atomic accesses. They are arguments of macros, so this searches the
        text."""
        start, end = self.body
        for found in ORDERS.finditer(self.text.code, start, end):
            span = found.span()
            self.faults.add(
                Fault(
                    self.file,
                    *span,
                    "order",
                    RELAXED[found[1]],
                    self.text.line(span[0]),
                    self.text.line(span[0]),
                    self.function,
                )
            )
        for found in re.finditer(rb"\brcu_assign_pointer\b", self.text.code[start:end]):
            span = (start + found.start(), start + found.end())
            self.faults.add(
                Fault(
                    self.file,
                    *span,
                    "order",
                    b"CMM_STORE_SHARED",
                    self.text.line(span[0]),
                    self.text.line(span[0]),
                    self.function,
                )
            )
