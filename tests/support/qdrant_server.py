"""A Qdrant on a loopback port: the engine of Qdrant itself, from the package `qdrant-edge-py`.

The package has the engine without its server. Here are those requests of the server that ragmemory makes;
collections have one shard and one replica.
"""

from __future__ import annotations

import importlib.util
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from http import HTTPMethod, HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.http_server import served

if TYPE_CHECKING:
    from qdrant_edge import EdgeConfig, EdgeShard, Filter, QueryRequest

PACKAGE = "qdrant_edge"
MISSING = "There is no wheel of qdrant-edge-py for this platform"
# Bytes of a request that a Qdrant accepts by default.
MAX_BYTES = 32 << 20
# After as many written points, segments are merged and get their graphs; Qdrant does so in the background.
OPTIMIZE_EVERY = 10_000


async def serve_qdrant(stack: AsyncExitStack) -> str:
    """The URL of an empty one until the stack closes; skips the test if there can be none."""
    if importlib.util.find_spec(PACKAGE) is None:
        pytest.skip(MISSING)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="qdrant-")))
    collections = Collections(folder)
    stack.callback(collections.close)
    return await stack.enter_async_context(served(application(collections)))


class Collection:
    """One shard of the engine. Writes are serial."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        from qdrant_edge import EdgeShard

        folder.mkdir()
        self.settings = settings
        self.shard: EdgeShard = EdgeShard.create(str(folder), _config(settings))
        self._lock = threading.Lock()
        self._written = 0

    def index(self, field: str, schema: str) -> None:
        from qdrant_edge import PayloadSchemaType, UpdateOperation

        with self._lock:
            kind = PayloadSchemaType.__dict__[schema.capitalize()]
            self.shard.update(UpdateOperation.create_field_index(field, kind))

    def upsert(self, points: Sequence[dict[str, Any]]) -> None:
        from qdrant_edge import Point, UpdateOperation

        made = [Point(one["id"], _vectors(one["vector"]), one.get("payload")) for one in points]
        with self._lock:
            self.shard.update(UpdateOperation.upsert_points(made))
            self._written += len(made)
            if self._written >= OPTIMIZE_EVERY:
                self._written = 0
                self.shard.optimize()

    def delete(self, ids: list[int | str]) -> None:
        from qdrant_edge import UpdateOperation

        with self._lock:
            self.shard.update(UpdateOperation.delete_points([*ids]))

    def retrieve(self, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        found = self.shard.retrieve(
            wanted["ids"],
            with_payload=wanted.get("with_payload", True),
            with_vector=wanted.get("with_vector", False),
        )
        return [{"id": one.id, "payload": one.payload, "vector": _plain(one.vector)} for one in found]

    def query(self, searches: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        from qdrant_edge import QueryBatchRequest

        found = self.shard.query_batch(QueryBatchRequest([_search(one) for one in searches]))
        return [
            {"points": [{"id": one.id, "version": one.version, "score": one.score} for one in points]}
            for points in found
        ]


class Collections:
    """All collections of a server, by their names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0
        self.named: dict[str, Collection] = {}

    def create(self, name: str, settings: dict[str, Any]) -> None:
        self._made += 1
        self.named[name] = Collection(self._folder / str(self._made), settings)

    def delete(self, name: str) -> bool:
        collection = self.named.pop(name, None)
        if collection is not None:
            collection.shard.close()
        return collection is not None

    def close(self) -> None:
        for name in [*self.named]:
            self.delete(name)


def _config(settings: dict[str, Any]) -> EdgeConfig:
    """See `PUT /collections/{name}`."""
    from qdrant_edge import EdgeConfig, EdgeSparseVectorParams, Modifier

    return EdgeConfig(
        vectors={name: _dense(one) for name, one in settings["vectors"].items()},
        sparse_vectors={
            name: EdgeSparseVectorParams(
                on_disk=one["index"]["on_disk"], modifier=Modifier.__dict__[one["modifier"].capitalize()]
            )
            for name, one in settings["sparse_vectors"].items()
        },
        on_disk_payload=settings["on_disk_payload"],
    )


def _dense(settings: dict[str, Any]) -> Any:
    from qdrant_edge import (
        Distance,
        EdgeVectorParams,
        HnswIndexConfig,
        ScalarQuantizationConfig,
        ScalarType,
        VectorStorageDatatype,
    )

    graph = settings["hnsw_config"]
    scalar = (settings.get("quantization_config") or {}).get("scalar")
    return EdgeVectorParams(
        size=settings["size"],
        distance=Distance.__dict__[settings["distance"]],
        on_disk=settings["on_disk"],
        datatype=VectorStorageDatatype.__dict__[settings["datatype"].capitalize()],
        # 10,000 kB is the server's default.
        hnsw_config=HnswIndexConfig(graph["m"], graph["ef_construct"], 10_000),
        quantization_config=scalar
        and ScalarQuantizationConfig(
            ScalarType.__dict__[scalar["type"].capitalize()], always_ram=scalar["always_ram"]
        ),
    )


def _vectors(named: dict[str, Any]) -> dict[str, Any]:
    from qdrant_edge import SparseVector

    return {
        name: SparseVector(one["indices"], one["values"]) if isinstance(one, dict) else one
        for name, one in named.items()
    }


def _plain(vectors: Any) -> Any:
    if not isinstance(vectors, dict):
        return vectors
    return {
        name: one if isinstance(one, list) else {"indices": one.indices, "values": one.values}
        for name, one in vectors.items()
    }


def _search(wanted: dict[str, Any]) -> QueryRequest:
    from qdrant_edge import Query, QueryRequest, SearchParams, SparseVector

    query = wanted["query"]["nearest"]
    if isinstance(query, dict):
        query = SparseVector(query["indices"], query["values"])
    parameters = wanted.get("params")
    return QueryRequest(
        wanted["limit"],
        query=Query.Nearest(query, using=wanted["using"]),
        filter=_filter(wanted.get("filter")),
        params=SearchParams(hnsw_ef=parameters["hnsw_ef"]) if parameters else None,
    )


def _filter(conditions: dict[str, Any] | None) -> Filter | None:
    from qdrant_edge import FieldCondition, Filter, MatchAny

    if conditions is None:
        return None
    return Filter(
        must=[FieldCondition(one["key"], match=MatchAny(one["match"]["any"])) for one in conditions["must"]]
    )


def application(collections: Collections) -> Starlette:
    """The routes of Qdrant's REST interface."""

    async def listed(_: Request) -> Response:
        return _result({"collections": [{"name": name} for name in collections.named]})

    async def exists(request: Request) -> Response:
        return _result({"exists": request.path_params["name"] in collections.named})

    async def create(request: Request) -> Response:
        await run_in_threadpool(collections.create, request.path_params["name"], await request.json())
        return _result(True)

    async def delete(request: Request) -> Response:
        return _result(await run_in_threadpool(collections.delete, request.path_params["name"]))

    def of_collection(act: Callable[[Collection, Any], Any]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            name = request.path_params["name"]
            if int(request.headers.get("content-length", "0")) > MAX_BYTES:
                return _error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Payload too large")
            if (collection := collections.named.get(name)) is None:
                return _error(HTTPStatus.NOT_FOUND, f"Not found: Collection `{name}` doesn't exist!")
            return _result(await run_in_threadpool(act, collection, await request.json()))

        return answer

    routes: list[tuple[str, HTTPMethod, Callable[[Request], Any]]] = [
        ("", HTTPMethod.GET, listed),
        ("/{name}", HTTPMethod.PUT, create),
        ("/{name}", HTTPMethod.DELETE, delete),
        ("/{name}/exists", HTTPMethod.GET, exists),
        ("/{name}/index", HTTPMethod.PUT, of_collection(_create_index)),
        ("/{name}/points", HTTPMethod.PUT, of_collection(_upsert)),
        ("/{name}/points", HTTPMethod.POST, of_collection(Collection.retrieve)),
        ("/{name}/points/delete", HTTPMethod.POST, of_collection(_delete)),
        ("/{name}/points/query/batch", HTTPMethod.POST, of_collection(_query)),
    ]
    return Starlette(
        routes=[Route(f"/collections{path}", act, methods=[method]) for path, method, act in routes]
    )


def _create_index(collection: Collection, body: dict[str, Any]) -> dict[str, Any]:
    collection.index(body["field_name"], body["field_schema"])
    return _COMPLETED


def _upsert(collection: Collection, body: dict[str, Any]) -> dict[str, Any]:
    collection.upsert(body["points"])
    return _COMPLETED


def _delete(collection: Collection, body: dict[str, Any]) -> dict[str, Any]:
    collection.delete(body["points"])
    return _COMPLETED


def _query(collection: Collection, body: dict[str, Any]) -> list[dict[str, Any]]:
    return collection.query(body["searches"])


_COMPLETED = {"operation_id": 0, "status": "completed"}


def _result(result: Any) -> Response:
    return JSONResponse({"result": result, "status": "ok", "time": 0.0})


def _error(status: HTTPStatus, message: str) -> Response:
    return JSONResponse({"status": {"error": message}, "time": 0.0}, status)
