"""The map of the memory: its documents as points, in clusters that are named by their words."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from ragchat.sanitize import one_line
from ragchat.uris import short_uri
from ragchat.web.site import Site, route

# More would not be told apart on a screen.
POINTS = 4_000


async def show(site: Site, _: Request) -> dict[str, Any]:
    found = await site.memory.map(POINTS)
    return {
        "points": [
            {
                "document_id": point.document_id,
                "title": one_line(point.title or short_uri(point.uri)),
                "x": point.x,
                "y": point.y,
                "cluster": point.cluster,
            }
            for point in found.points
        ],
        "clusters": [
            {"words": [*map(one_line, one.words)], "x": one.x, "y": one.y} for one in found.clusters
        ],
        "documents": (await site.memory.stats()).documents,
    }


ROUTES = (route("/api/map", show),)
