"""The text of a Word document as Word shows it, as a page of HTML.

Every element of a text is known here, or a sign of :class:`~posology.corpus.gaps.Gaps` stands for it: an element that is
passed over may have been a "not". Names are those of ECMA-376, part 1, section 17.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from posology.corpus.documents.markup import Page
from posology.corpus.documents.symbols import character, decoded
from posology.corpus.documents.word import tables
from posology.corpus.documents.word.fields import Fields, matched, replacement, unfilled
from posology.corpus.documents.word.looks import Look, Looks
from posology.corpus.documents.word.names import MC, M, W, is_on, short, value
from posology.corpus.documents.word.omml import Formulas
from posology.corpus.documents.word.package import Package
from posology.corpus.documents.word.shown import goes_on, reduce
from posology.corpus.documents.word.words import Words
from posology.corpus.gaps import PICTURE, Gaps

if TYPE_CHECKING:
    from lxml.etree import _Element

#: programs whose objects are equations, as their names begin
_EQUATIONS = ("equation", "mathtype")
_BOX = f"{W}txbxContent"
#: attribute of a line across the page
_RULE = "{urn:schemas-microsoft-com:office:office}hr"
#: hold text as if they were not there
_HOLDERS = frozenset({
    "w:hyperlink", "w:smartTag", "w:customXml", "w:ins", "w:moveTo", "w:dir", "w:bdo", "w:sdtContent", "w:rubyBase",
})  # fmt: skip
#: show nothing: marks, properties, what was deleted or moved away, readings above ruby bases
_SILENT = frozenset({
    "w:pPr", "w:rPr", "w:tblPr", "w:tblPrEx", "w:tblGrid", "w:trPr", "w:tcPr", "w:sdtPr", "w:sdtEndPr", "w:smartTagPr",
    "w:customXmlPr", "w:rubyPr", "w:rt", "w:dirPr", "w:sectPr", "w:del", "w:moveFrom", "w:delText", "w:delInstrText",
    "w:bookmarkStart", "w:bookmarkEnd", "w:permStart", "w:permEnd", "w:proofErr", "w:commentRangeStart",
    "w:commentRangeEnd", "w:commentReference", "w:annotationRef", "w:lastRenderedPageBreak", "w:moveFromRangeStart",
    "w:moveFromRangeEnd", "w:moveToRangeStart", "w:moveToRangeEnd", "w:customXmlInsRangeStart", "w:customXmlInsRangeEnd",
    "w:customXmlDelRangeStart", "w:customXmlDelRangeEnd", "w:customXmlMoveFromRangeStart",
    "w:customXmlMoveFromRangeEnd", "w:customXmlMoveToRangeStart", "w:customXmlMoveToRangeEnd", "w:footnoteRef",
    "w:endnoteRef", "w:separator", "w:continuationSeparator", "w:softHyphen", "w:fldData", "m:rPr", "m:ctrlPr",
})  # fmt: skip
#: stand for characters
_CHARACTERS = {"w:tab": " ", "w:ptab": " ", "w:noBreakHyphen": "\u2011"}
_DRAWINGS = frozenset({"w:drawing", "w:pict", "w:object", "w:contentPart"})
_MATHS = frozenset({"m:oMath", "m:oMathPara"})
#: of a symbol
_CODE = re.compile(r"[\dA-Fa-f]{1,8}")
_NOTES = {"w:footnoteReference": "footnote", "w:endnoteReference": "endnote"}


def page(package: Package) -> Page:
    """Return a document as a page."""
    gaps = Gaps()
    return Page(_Document(package, gaps).root(), gaps)


class _Document:
    def __init__(self, package: Package, gaps: Gaps) -> None:
        self._package = package
        self._gaps = gaps
        self._looks = Looks(
            package.part("styles"), package.part("theme"), package.part("fontTable")
        )
        self._formulas = Formulas(self._formula_run, gaps)
        #: marks of whole fields
        self._marks: dict[_Element, _Element] = {}
        self._fields = Fields(self._marks, gaps)
        self._words = Words()
        #: style of the paragraph that is read
        self._style: str | None = None
        #: text boxes in it, whose text comes behind it
        self._boxes: list[_Element] = []
        #: numbers of the notes that were referred to, from 1, by their kind and id
        self._notes: dict[tuple[str, str], int] = {}
        self._ignored = _ignored(package.document)

    def root(self) -> _Element:
        """Return the page's root."""
        from lxml import etree

        root = etree.Element("html")
        body = self._package.document.find(f"{W}body")
        if body is None:
            return root
        self._prepare(self._package.document)
        self._blocks(body, root)
        if self._notes:
            etree.SubElement(root, "h2").text = "Notes"
            self._read_notes(root)
        return root

    def _read_notes(self, root: _Element) -> None:
        notes: dict[tuple[str, str], _Element] = {}
        for kind in _NOTES.values():
            part = self._package.part(f"{kind}s")
            if part is not None:
                self._prepare(part)
                for note in part.iterfind(f"{W}{kind}"):
                    notes.setdefault((kind, note.get(f"{W}id") or ""), note)
        read = 0
        while read < len(self._notes):  # a note may refer to others, which come behind it
            for named, number in list(self._notes.items())[read:]:
                read = number
                if named in notes:
                    self._words.add(f"[{number}] ")
                    self._blocks(notes[named], root)

    def _prepare(self, part: _Element) -> None:
        """Reduce a part to what is shown, and find its fields."""
        reduce(part)
        self._marks |= matched(part)
        self._fields = Fields(self._marks, self._gaps)

    # blocks

    def _blocks(self, element: _Element, out: _Element) -> None:
        """Add the blocks of an element that holds some."""
        self._add_blocks(element, out)
        self._end(out)

    def _add_blocks(self, element: _Element, out: _Element) -> None:
        from lxml import etree

        for child in element:
            name = short(str(child.tag))
            if name == "w:p":
                self._paragraph(child, out)
            elif name == "w:tbl":
                self._end(out)
                self._rows(child, table := etree.SubElement(out, "table"))
                tables.finish(child, table)
            elif name == "w:sdt" and not _is_placeholder(child):
                for content in child.iterfind(f"{W}sdtContent"):
                    self._add_blocks(content, out)
            elif name in _HOLDERS:
                self._add_blocks(child, out)
            elif name == "w:altChunk":
                self._words.add(self._gaps.sign("document that is embedded"))
                self._end(out)
            elif name not in _SILENT:
                self._inline(child)
                self._end(out)

    def _paragraph(self, element: _Element, out: _Element) -> None:
        properties = element.find(f"{W}pPr")
        self._style = None
        joined = False
        if properties is not None:
            self._style = value(properties.find(f"{W}pStyle"))
            joined = goes_on(properties.find(f"{W}rPr"))
        for child in element:
            self._inline(child)
        if not joined:
            self._end(out)

    def _end(self, out: _Element) -> None:
        """Add the paragraph, and then the text boxes that are anchored in it."""
        self._words.paragraph(self._looks.tag(self._style), out)
        boxes, self._boxes = self._boxes, []
        outer, self._fields = self._fields, Fields(self._marks, self._gaps)
        for box in boxes:
            self._blocks(box, out)
        self._fields = outer

    def _rows(self, element: _Element, out: _Element) -> None:
        from lxml import etree

        for child in element:
            name = short(str(child.tag))
            if name == "w:tr":
                tables.begin_row(child, row := etree.SubElement(out, "tr"))
                self._rows(child, row)
            elif name == "w:tc":
                tables.describe(child, cell := etree.SubElement(out, "td"))
                self._blocks(child, cell)
            elif name == "w:sdt":
                for content in child.iterfind(f"{W}sdtContent"):
                    self._rows(content, out)
            elif name in _HOLDERS:
                self._rows(child, out)
            elif name not in _SILENT:
                self._blocks_of(child, out)

    def _blocks_of(self, element: _Element, out: _Element) -> None:
        self._inline(element)
        self._end(out)

    # what stands in a line

    def _inline(self, element: _Element) -> None:
        """Add an element of a paragraph."""
        name = short(str(element.tag))
        if name == "w:r":
            self._run(element)
        elif name in _MATHS:
            self._formula(element)
        elif name == "w:fldSimple":
            self._simple(element)
        elif name == "w:sdt":
            self._control(element)
        elif name in _HOLDERS:
            for child in element:
                self._inline(child)
        elif name not in _SILENT:
            self._unknown(element, name)

    def _control(self, element: _Element) -> None:
        if _is_placeholder(element):
            self._show(self._gaps.sign("content control that is not filled in"))
            return
        for content in element.iterfind(f"{W}sdtContent"):
            for child in content:
                self._inline(child)

    def _simple(self, element: _Element) -> None:
        code = element.get(f"{W}instr") or ""
        shown = replacement(code, self._gaps)
        children = [child for child in element if short(str(child.tag)) not in _SILENT]
        if shown is None and not children:
            shown = unfilled(code, None, self._gaps)
        if shown is not None:
            self._show(shown)
            return
        for child in children:
            self._inline(child)

    def _formula(self, element: _Element) -> None:
        if self._fields.quiet:
            return
        text = self._formulas.text(element)
        if short(str(element.tag)) == "m:oMathPara":
            self._words.line()
        self._words.formula(text)
        if short(str(element.tag)) == "m:oMathPara":
            self._words.line()

    def _formula_run(self, element: _Element) -> str:
        """Return the text of a run in a formula, or of what stands in its place."""
        outer, self._words = self._words, Words()
        if short(str(element.tag)) == "m:r":
            self._run(element)
        else:
            self._inline(element)
        text, self._words = self._words.text, outer
        return text

    def _run(self, run: _Element) -> None:
        look = self._looks.of(run.find(f"{W}rPr"), self._style)
        for child in run:
            name = short(str(child.tag))
            if name == "w:fldChar":
                self._words.add(self._fields.mark(child))
            elif name == "w:instrText":
                self._fields.code(child.text or "")
            elif not look.shown or name in _SILENT:
                continue
            elif name in ("w:t", "m:t"):
                text = "".join(map(str, child.itertext())) if len(child) else child.text or ""
                self._show(self._looks.text(text, look, self._gaps), look)
            elif name in _CHARACTERS:
                self._show(_CHARACTERS[name], look)
            elif name in ("w:br", "w:cr"):
                self._break(child)
            elif name in ("w:sym", "w16se:symEx"):
                self._show(self._symbol(child, look), look)
            elif name in _NOTES:
                self._note(child, _NOTES[name])
            elif name in _DRAWINGS:
                self._drawing(child)
            elif name == "w:ruby":
                for base in child.iterfind(f"{W}rubyBase"):
                    self._inline(base)
            else:
                self._inline(child)

    def _show(self, text: str, look: Look | None = None) -> None:
        if self._fields.quiet:
            return
        self._words.add(text, look.shift if look else "")

    def _break(self, element: _Element) -> None:
        if self._fields.quiet:
            return
        if element.get(f"{W}type") in ("page", "column"):
            self._words.add(" ")
        else:
            self._words.line()

    def _symbol(self, element: _Element, look: Look) -> str:
        """Return a symbol; in an ordinary font its code is Unicode's."""
        said = {str(name).rpartition("}")[2]: str(what) for name, what in element.items()}
        font = said.get("font") or look.font
        code = said.get("char", "")
        char = character(int(code, 16)) if _CODE.fullmatch(code) else None
        if char is None:
            return self._gaps.sign("symbol without a character")
        return decoded(char, font, self._gaps, signs=self._looks.shows_signs(font))

    def _note(self, reference: _Element, kind: str) -> None:
        if self._fields.quiet:
            return
        named = kind, reference.get(f"{W}id") or ""
        number = self._notes.setdefault(named, len(self._notes) + 1)
        if reference.get(f"{W}customMarkFollows") not in ("1", "true", "on"):
            self._words.add(f"[{number}]", "sup")

    def _drawing(self, element: _Element) -> None:
        """Add a sign for what is drawn in a line; the text of boxes is read."""
        if self._fields.quiet:
            return
        found = boxes(element)
        self._boxes += found
        if not found:
            self._words.add(sign(element, self._gaps))

    def _unknown(self, element: _Element, name: str) -> None:
        for mark in element.iter(f"{W}fldChar"):
            self._fields.mark(mark)
        namespace = name[1:].partition("}")[0] if name.startswith("{") else ""
        if namespace in self._ignored and not any(True for _ in element.iter(f"{W}t", f"{M}t")):
            return
        shown = name.rpartition("}")[2]
        self._show(self._gaps.sign(f"element {shown}"))


def _is_placeholder(control: _Element) -> bool:
    """Return whether a content control asks for its content."""
    return is_on(control.find(f"{W}sdtPr/{W}showingPlcHdr"))


def _ignored(root: _Element) -> frozenset[str]:
    """Return the namespaces that programs that do not know them pass over."""
    names = (root.get(f"{MC}Ignorable") or "").split()
    return frozenset(root.nsmap.get(name) or "" for name in names)


def boxes(drawing: _Element) -> list[_Element]:
    """Return the contents of the text boxes of a drawing, without those within others."""
    found = dict.fromkeys(drawing.iter(_BOX))
    return [box for box in found if next(box.iterancestors(_BOX), None) not in found]


def sign(drawing: _Element, gaps: Gaps) -> str:
    """Return the sign of ``gaps`` for a drawing without text; empty: it stands beside or behind the text."""
    if _is_equation(drawing):
        return gaps.sign("equation that is an embedded object")
    return PICTURE if _is_in_line(drawing) else ""


def _is_equation(drawing: _Element) -> bool:
    return any(
        (one.get("ProgID") or "").lower().startswith(_EQUATIONS)
        for one in drawing.iter()
        if short(str(one.tag)) == "o:OLEObject"
    )


def _is_in_line(drawing: _Element) -> bool:
    name = short(str(drawing.tag))
    if name == "w:drawing":
        return any(short(str(child.tag)) == "wp:inline" for child in drawing)
    return name == "w:contentPart" or any(map(_is_shape_in_line, drawing))


def _is_shape_in_line(element: _Element) -> bool:
    name = short(str(element.tag))
    if not name.startswith("v:") or name == "v:shapetype" or element.get(_RULE) is not None:
        return False
    return "position:absolute" not in (element.get("style") or "").replace(" ", "")
