"""A parsed page of the report."""

from html.parser import HTMLParser

NASTY = '<script>alert("1")</script>\x1b[31m'
SHOWN = NASTY.replace("\x1b", "\\x1b")  # as a page has it
VOID = {"meta", "link", "img"}


class Page(HTMLParser):
    """A page taken apart: elements that are closed in order, and the text of each kind."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.tables = [], [], {}, []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.tables.append([])
        if tag in ("th", "td"):
            self.tables[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data.strip())
            if self.open[-1] in ("th", "td"):
                self.tables[-1][-1] += data

    def having(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def headings(self, level):
        return [text for text in self.texts.get(f"h{level}", []) if text]

    def row(self, name):
        (found,) = [cells for cells in self.tables if cells and cells[0] == name]
        return found[1:]
