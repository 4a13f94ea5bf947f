"""A picture of a graph as SVG.

Layered drawing after Sugiyama, Tagawa and Toda (IEEE Trans. SMC 11(2), 1981), without dummy vertices: a node
stands one row below the lowest of what it reads (longest path), constants right above what reads them; a few
sweeps order each row by the mean position of its neighbours; then each node moves under the mean of what it
reads as far as its row allows. Graphs that a node holds are drawn inside its box, each once. Pointing at a
box shows the node's text and the user's line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from mycelia.ir.graph import ArrayConstant, Graph, Node, Value
from mycelia.ir.printer import array_text

#: Nodes of one picture; the rest of a larger graph is only counted.
MAX_NODES = 600

_LINE = 15.0  # height of a line of text, pixels
_CHAR = 6.7  # width of a character at 11 px of a monospaced font
_GAP_X, _GAP_Y, _MARGIN = 18.0, 34.0, 12.0
_SWEEPS = 4
_STYLE = (
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1b1b1b}.op{font-weight:bold}.type{fill:#5a6470}"
    ".box{fill:#eef4fb;stroke:#4a78a8}.end{fill:#e9f6ec;stroke:#4b9460}.const{fill:#f7f3e3;stroke:#a8924a}"
    ".held{fill:#ffffff;stroke:#9aa4b0;stroke-dasharray:4 3}.edge{fill:none;stroke:#6b7682;stroke-opacity:.7}"
)


@dataclass(eq=False)
class _Box:
    """Something drawn: a parameter, a node or an output. Positions are of the upper left corner."""

    lines: list[tuple[str, str]]
    style: str
    tip: str
    inner: list[_Picture] = field(default_factory=list)
    reads: list[_Box] = field(default_factory=list)
    read_by: list[_Box] = field(default_factory=list)
    row: int = 0
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0

    def measure(self) -> None:
        widest = max((len(text) for _, text in self.lines), default=0)
        self.width = max(widest * _CHAR + 2 * _MARGIN, sum(p.width + _MARGIN for p in self.inner) + _MARGIN)
        self.height = len(self.lines) * _LINE + 10
        if self.inner:
            self.height += max(p.height for p in self.inner) + _MARGIN

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass
class _Picture:
    """A graph laid out: its name, size, boxes, and how many nodes were left out."""

    title: str
    boxes: list[_Box]
    width: float = 0.0
    height: float = 0.0
    left_out: int = 0


def draw(graph: Graph) -> str:
    """The picture of a graph as the text of an SVG file.

    Args:
        graph: a finished graph. Of more than ``MAX_NODES`` nodes, the first are drawn and the rest counted.

    >>> from mycelia.ir.parser import parse_graph
    >>> draw(parse_graph("graph f(%0: float32[2]) { return %0 }")).startswith("<svg ")
    True
    """
    picture = _Drawing().picture(graph, f"graph {graph.name}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{picture.width:.0f}" height="{picture.height:.0f}" '
        f'viewBox="0 0 {picture.width:.0f} {picture.height:.0f}">',
        f"<style>{_STYLE}</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    _render(picture, 0.0, 0.0, parts)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


class _Drawing:
    """Lays out a graph and what it holds, with one allowance of nodes for all."""

    def __init__(self) -> None:
        self.left = MAX_NODES
        self.drawn: set[Graph] = set()

    def picture(self, graph: Graph, title: str) -> _Picture:
        if graph in self.drawn:
            return _laid_out(_Picture(f"{title} (drawn before)", []))
        self.drawn.add(graph)
        boxes: list[_Box] = []
        made: dict[Value, _Box] = {}
        for i, param in enumerate(graph.params):
            made[param] = _Box([("op", f"input {i}"), ("type", str(param.type))], "end", f"input {i}: {param.type}")
            boxes.append(made[param])
        shown = graph.nodes[: max(self.left, 0)]
        self.left -= len(shown)
        for node in shown:
            box = self.node(node)
            for value in node.inputs:
                _connect(made.get(value), box)
            made.update(dict.fromkeys(node.outputs, box))
            boxes.append(box)
        for i, value in enumerate(graph.outputs):
            box = _Box([("op", f"output {i}"), ("type", str(value.type))], "end", f"output {i}: {value.type}")
            _connect(made.get(value), box)
            boxes.append(box)
        return _laid_out(_Picture(title, boxes, left_out=len(graph.nodes) - len(shown)))

    def node(self, node: Node) -> _Box:
        plain = [(name, value) for name, value in node.attrs.items() if not isinstance(value, Graph)]
        lines = [("op", node.op.name)]
        lines += [("text", _shortened(f"{name}={_attribute(value)}", 36)) for name, value in plain[:4]]
        types = ", ".join(str(v.type) for v in node.outputs)
        lines.append(("type", _shortened(types, 48)))
        tip = f"{node.op.name}({', '.join(str(v.type) for v in node.inputs)}) : {types}"
        tip += "".join(f"\n{name} = {_shortened(_attribute(value), 200)}" for name, value in plain)
        if node.location is not None:
            tip += f"\n{node.location}\n{node.location.text}"
        inner = [self.picture(g, name) for name, g in node.subgraphs]
        return _Box(lines, "const" if node.op.name == "constant" else "box", tip, inner)


def _attribute(value: object) -> str:
    return array_text(value.array, elide=256) if isinstance(value, ArrayConstant) else repr(value)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _connect(source: _Box | None, target: _Box) -> None:
    if source is not None:
        target.reads.append(source)
        source.read_by.append(target)


def _laid_out(picture: _Picture) -> _Picture:
    """Give every box of a picture its place, and the picture its size."""
    rows = _rows(picture.boxes)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        for row in rows if downwards else reversed(rows):
            for box in row:
                near = box.reads if downwards else box.read_by
                box.x = sum(b.x for b in near) / len(near) if near else box.x
            row.sort(key=lambda b: b.x)
            for i, box in enumerate(row):
                box.x = i - len(row) / 2
    top = _MARGIN + _LINE + 8
    for row in rows:
        right = 0.0
        for box in row:
            box.measure()
            wanted = sum(b.middle for b in box.reads) / len(box.reads) - box.width / 2 if box.reads else right
            box.x, box.y = max(wanted, right, _MARGIN), top
            right = box.x + box.width + _GAP_X
        top += max((box.height for box in row), default=0.0) + _GAP_Y
    least = len(picture.title) * _CHAR + 2 * _MARGIN
    picture.width = max([least, *[box.x + box.width + _MARGIN for box in picture.boxes]])
    picture.height = top - (_GAP_Y if rows else 0) + _MARGIN + (_LINE if picture.left_out else 0)
    return picture


def _rows(boxes: list[_Box]) -> list[list[_Box]]:
    """The boxes by row; boxes come after what they read."""
    for box in boxes:
        box.row = 1 + max((b.row for b in box.reads), default=-1)
    for box in reversed(boxes):
        if not box.reads and box.read_by and box.style == "const":
            box.row = max(min(b.row for b in box.read_by) - 1, 0)
    last = max((box.row for box in boxes), default=-1)
    for box in boxes:
        if box.style == "end" and box.reads:
            box.row = last
    rows: list[list[_Box]] = [[] for _ in range(last + 1)]
    for box in boxes:
        box.x = float(len(rows[box.row]))
        rows[box.row].append(box)
    return [row for row in rows if row]


def _text(text: str) -> str:
    return escape("".join(c if c.isprintable() or c == "\n" else "�" for c in text))


def _render(picture: _Picture, x: float, y: float, parts: list[str]) -> None:
    """Append the elements of a picture whose upper left corner is at (x, y)."""
    parts.append(f'<text class="op" x="{x + _MARGIN:.1f}" y="{y + _MARGIN + 6:.1f}">{_text(picture.title)}</text>')
    for box in picture.boxes:
        for source in box.reads:
            x1, y1 = x + source.middle, y + source.y + source.height
            x2, y2 = x + box.middle, y + box.y
            half = (y1 + y2) / 2
            parts.append(
                f'<path class="edge" d="M{x1:.1f} {y1:.1f}C{x1:.1f} {half:.1f} {x2:.1f} {half:.1f} {x2:.1f} {y2:.1f}"/>'
            )
    for box in picture.boxes:
        left, top = x + box.x, y + box.y
        parts.append(f"<g><title>{_text(box.tip)}</title>")
        parts.append(
            f'<rect class="{box.style}" x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" '
            f'height="{box.height:.1f}" rx="5"/>'
        )
        for i, (style, text) in enumerate(box.lines):
            at = top + (i + 1) * _LINE
            parts.append(f'<text class="{style}" x="{left + _MARGIN:.1f}" y="{at:.1f}">{_text(text)}</text>')
        inner_x, inner_y = left + _MARGIN, top + len(box.lines) * _LINE + 8
        for inner in box.inner:
            parts.append(
                f'<rect class="held" x="{inner_x:.1f}" y="{inner_y:.1f}" width="{inner.width:.1f}" '
                f'height="{inner.height:.1f}" rx="4"/>'
            )
            _render(inner, inner_x, inner_y, parts)
            inner_x += inner.width + _MARGIN
        parts.append("</g>")
    if picture.left_out:
        at = y + picture.height - _MARGIN / 2
        parts.append(
            f'<text class="type" x="{x + _MARGIN:.1f}" y="{at:.1f}">and {picture.left_out:,} more nodes</text>'
        )
