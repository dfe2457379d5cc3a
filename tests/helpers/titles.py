"""Whether the titles of a picture can be read."""

from itertools import combinations

from matplotlib.figure import Figure


def unreadable(figure: Figure) -> list[str]:
    """Titles that another one covers, or that reach beyond the figure, after it has been drawn."""
    titles = [ax.title for ax in figure.axes if ax.get_title()]
    places = {title.get_text(): title.get_window_extent() for title in titles}
    wide = figure.bbox.width
    bad = [text for text, place in places.items() if place.x0 < -1 or place.x1 > wide + 1]
    pairs = combinations(places.items(), 2)
    return bad + [f"{one} | {other}" for (one, here), (other, there) in pairs if here.overlaps(there)]
