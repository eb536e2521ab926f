"""XML rows: the elements named by `rowTag`, cut out of a text that streams by, and their trees (FF-18).

Only row elements are parsed, one at a time, each without the document's prolog. Entities that a DTD declares do not exist in them, so that
nothing can be expanded without bounds. One broken row does not end a file.

A tree is that of `json.syntax_tree`: an element with attributes or children is an `Element` with a pair per attribute, child and piece of
text, repeated names included; any other element is its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.parsers import expat

from lakelet.autoloader.formats.charsets import longer_text
from lakelet.autoloader.formats.json.syntax_tree import BrokenText, Node, Obj

_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_TAG_END = re.compile(r"(?:[^>\"']|\"[^\"]*\"|'[^']*')*>")
MAX_DEPTH = 200


@dataclass(frozen=True)
class XmlRules:
    """What of an element becomes a field, and under which name."""

    row_tag: str
    attribute_prefix: str = "_"
    value_tag: str = "_VALUE"
    exclude_attributes: bool = False
    trim: bool = True
    ignore_namespace: bool = False
    null_value: str | None = None

    def name(self, tag: str) -> str:
        """The field name of a tag or attribute."""
        return tag.rpartition(":")[2] if self.ignore_namespace else tag

    def value(self, text: str) -> str | None:
        """The value of a text; None for the one that stands for NULL."""
        text = trimmed(text) if self.trim else text
        return None if text == self.null_value else text


def trimmed(text: str) -> str:
    """A text without the white space of XML around it: other spaces of Unicode are a part of the text."""
    return text.strip(" \t\r\n")


class Element(Obj):
    """An element with attributes or children, as its pairs: attributes first, then children and pieces of text in their order."""

    attributes = 0
    """How many of the pairs are attributes."""
    has_children = False
    source: tuple[bytes, int, int] = (b"", 0, 0)
    """The text of the row, and where in it start tag and end tag begin; one place for an element without content."""

    def inner(self) -> str:
        """What stands between its tags, as Spark gives it to a STRING column: tags with their attributes, texts without escapes."""
        source, begin, end = self.source
        if begin == end:
            return ""
        text = source[begin:end].decode("utf-8")
        opened = _TAG_END.match(text, 1)
        parts: list[str] = []
        parser = expat.ParserCreate()
        parser.ordered_attributes = True
        parser.CharacterDataHandler = parts.append
        parser.StartElementHandler = lambda tag, pairs: parts.append(_start_tag(tag, pairs))
        parser.EndElementHandler = lambda tag: parts.append(f"</{tag}>")
        parser.Parse("<x>" + text[opened.end() if opened else 0 :] + "</x>", True)
        return "".join(parts[1:-1])


def _start_tag(tag: str, pairs: list[str]) -> str:
    return "<" + " ".join([tag, *(f'{name}="{value}"' for name, value in zip(pairs[::2], pairs[1::2], strict=True))]) + ">"


class _Cutter:
    """Finds row elements in a text that arrives in pieces."""

    def __init__(self, chunks: Iterator[str], rules: XmlRules) -> None:
        tag = rf"(?:[\w.-]+:)?{re.escape(rules.row_tag)}" if rules.ignore_namespace else re.escape(rules.row_tag)
        self._outside = re.compile(rf"<!--|<!\[CDATA\[|<\?|<{tag}(?=[\s/>])")
        self._inside = re.compile(rf"<!--|<!\[CDATA\[|<\?|<{tag}(?=[\s/>])|</{tag}\s*>")
        self._chunks = chunks
        self._text = ""

    def rows(self) -> Iterator[str]:
        at = 0
        while True:
            found = self._outside.search(self._text, at)
            if found is None:
                if not self._take_in_more(max(at, self._text.rfind("<", at)) if "<" in self._text[at:] else len(self._text)):
                    return
                at = 0
                continue
            start = found.start()
            other = _ENDS.get(found[0])
            end = self._end_of_mark(other, found.end()) if other else self._row_end(start)
            if end is not None:
                if not other:
                    yield self._text[start:end]
                at = end
            elif self._take_in_more(start):
                at = 0
            else:
                if not other:
                    yield self._text  # the file ends inside a row
                return

    def _end_of_mark(self, mark: str, at: int) -> int | None:
        found = self._text.find(mark, at)
        return None if found < 0 else found + len(mark)

    def _row_end(self, at: int) -> int | None:
        """Where the row that begins at `at` ends; rows inside it are a part of it."""
        depth = 0
        while (found := self._inside.search(self._text, at)) is not None:
            other = _ENDS.get(found[0])
            if other:
                end = self._end_of_mark(other, found.end())
            elif found[0].startswith("</"):
                depth, end = depth - 1, found.end()
            else:
                tag = _TAG_END.match(self._text, found.end())
                end = tag.end() if tag else None
                depth += 0 if tag is None or tag[0].endswith("/>") else 1
            if end is None or depth == 0:
                return end
            at = end
        return None

    def _take_in_more(self, keep: int) -> bool:
        """Drop the text before `keep` and take in about as much again as is left; False at the end."""
        self._text, taken, _ = longer_text(self._text[keep:], self._chunks)
        return taken > 0


def rows_of(chunks: Iterator[str], rules: XmlRules) -> Iterator[str]:
    """The texts of the row elements of a file. A file that is not XML at all is one text."""
    first = ""
    for chunk in chunks:
        first += chunk
        if first.strip():
            break
    if first.strip() and not first.lstrip().startswith("<"):
        yield first + "".join(chunks)
        return

    def again() -> Iterator[str]:
        yield first
        yield from chunks

    yield from _Cutter(again(), rules).rows()


def tree_of(text: str, rules: XmlRules) -> Obj:
    """The tree of one row element. Raises BrokenText."""
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.ordered_attributes = True
    try:
        source = text.encode("utf-8")
        builder = _Builder(rules, source, parser)
        parser.StartElementHandler = builder.start
        parser.EndElementHandler = builder.end
        parser.CharacterDataHandler = builder.text
        parser.Parse(source, True)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        raise BrokenText(str(error)) from None
    node = builder.root
    return node if isinstance(node, Obj) else Obj([(rules.value_tag, node)] if node else [])


class _Builder:
    """Makes the tree from what the parser reports."""

    def __init__(self, rules: XmlRules, source: bytes, parser: expat.XMLParserType) -> None:
        self._rules, self._source, self._parser = rules, source, parser
        self._open: list[tuple[str, Element, int]] = []
        self._texts: list[str] = []
        self.root: Node = None

    def start(self, tag: str, attributes: list[str]) -> None:
        if self._open:
            self._take_text(self._open[-1][1])
        if len(self._open) >= MAX_DEPTH:
            raise BrokenText("too deep")
        node, rules = Element(), self._rules
        if attributes and not rules.exclude_attributes:
            pairs = zip(attributes[::2], attributes[1::2], strict=True)
            node.extend((rules.attribute_prefix + rules.name(name), rules.value(value)) for name, value in pairs)
            node.attributes = len(node)
        self._open.append((rules.name(tag), node, self._parser.CurrentByteIndex))

    def text(self, text: str) -> None:
        self._texts.append(text)

    def end(self, tag: str) -> None:
        name, node, begin = self._open.pop()
        done: Node = node
        if node:
            self._take_text(node)
            node.source = (self._source, begin, self._parser.CurrentByteIndex)
        else:
            done = self._rules.value("".join(self._texts))
            self._texts.clear()
        if self._open:
            parent = self._open[-1][1]
            parent.append((name, done))
            parent.has_children = True
        else:
            self.root = done

    def _take_text(self, node: Obj) -> None:
        text = "".join(self._texts)
        self._texts.clear()
        if trimmed(text):
            node.append((self._rules.value_tag, self._rules.value(text)))
