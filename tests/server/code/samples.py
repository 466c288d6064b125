"""A file of each language: its text, the path that names the language, and its definitions."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from ragmemory.code.syntax import parse
from ragmemory.text.languages import language_of


class Sample(NamedTuple):
    path: str
    text: str
    definitions: str  # the qualified names of functions and types, in the order of the text


def skip_without_grammar(path: str) -> None:
    """Skip a test if the grammar of the file's language is not installed."""
    language = language_of(path)
    if language is None or parse("", language) is None:
        pytest.skip(f"no grammar for {path} is installed")


SAMPLES = (
    Sample(
        "store.py",
        '''import os
from fast.disk import load as read

# The limit of a name.
LIMIT = 64


# Keeps texts.
@final
class Store(Base):
    """A store."""

    class Cursor:
        def move(self):
            return read(self)

    @property
    async def find(self, name):
        def inner(part):
            return read(part)

        return inner(name)


if LIMIT:

    def main():
        return Store().find("x")
''',
        "Store Store.Cursor Store.Cursor.move Store.find Store.find.inner main",
    ),
    Sample(
        "store.js",
        """const { load } = require("./disk");
export default class Store {
  #path = "";
  static make() { return new Store(); }
  find = async (name) => load(name);
}
function* walk() {}
const add = (a, b) => a + b;
Store.prototype.close = function () {};
const tools = { run() { return add(1, 2); } };
""",
        "Store Store.make Store.find walk add Store.close tools.run",
    ),
    Sample(
        "store.ts",
        """import { load } from "./disk";
/** Keeps texts. */
@Injectable()
export class Store<T> extends Base {
  constructor(private path: string) { super(path); }
  @Get() async find(name: string): Promise<T> { return load(name); }
}
export interface Shape { area(): number; }
enum Color { Red }
namespace Geo { export function area(side: number) { return side * side; } }
abstract class Task { abstract run(): void; }
export const add = (a: number, b: number): number => a + b;
""",
        "Store Store.constructor Store.find Shape Shape.area Color Geo Geo.area Task Task.run add",
    ),
    Sample(
        "app.tsx",
        "export const App: React.FC = () => <Box>{render()}</Box>;\nfunction render() { return <b />; }\n",
        "App render",
    ),
    Sample(
        "store.go",
        """package store

import "fmt"

// Store keeps texts.
type Store[T any] struct{ path string }

type Finder interface{ Find(name string) string }

func (s *Store[T]) Find(name string) string { return fmt.Sprint(s.path, name) }

func (Store[T]) Close() {}

func load(name string) string { return name }
""",
        "Store Finder Finder.Find Store.Find Store.Close load",
    ),
    Sample(
        "store.rs",
        """use crate::disk::load;

mod inner {
    pub fn deep() {}
}

/// Keeps texts.
#[derive(Debug)]
pub struct Store<T> {
    path: T,
}

pub trait Find {
    fn find(&self) -> u8;
}

impl<T> Store<T> {
    pub fn new(path: T) -> Self {
        Self { path }
    }
}

impl<T> Find for Store<T> {
    fn find(&self) -> u8 {
        load()
    }
}
""",
        "inner inner::deep Store Find Find::find Store Store::new Store Store::find",
    ),
    Sample(
        "Store.java",
        """package a.b;

/** Keeps texts. */
@Service
public class Store<T> extends Base {
  public Store(String path) { super(path); }
  @Override public T find(String name) { return load(name); }
  static class Inner { void run() {} }
  enum Color { RED }
}
interface Find { void find(); }
record Point(int x, int y) { int sum() { return x + y; } }
""",
        "Store Store.Store Store.find Store.Inner Store.Inner.run Store.Color Find Find.find Point Point.sum",
    ),
    Sample(
        "store.c",
        """#include "disk.h"
/* Loads a text. */
static int load(const char *name) { return find(name); }
struct store { int x; };
char *name_of(struct store *s) { return s->name; }
#ifdef WIDE
int wide(void) { return 1; }
#endif
""",
        "load store name_of wide",
    ),
    Sample(
        "store.cpp",
        """namespace geo {
// Keeps texts.
template <typename T> class Store : public Base {
 public:
  Store(int path) : path_(path) {}
  ~Store() {}
  T find(int name) const { return load(name); }
  int operator+(int x) { return x; }
};
}
int geo::Store<int>::load(int name) { return name; }
""",
        "geo geo::Store geo::Store::Store geo::Store::~Store geo::Store::find geo::Store::operator+ "
        "geo::Store::load",
    ),
    Sample(
        "Store.cs",
        """namespace A.B {
  /// Keeps texts.
  [Serializable]
  public class Store<T> : Base {
    public Store(string p) : base(p) { }
    public int Count { get { return Load(); } }
    public T Find(string n) { return this.Load(n); }
    struct Inner { void Run() { } }
  }
  interface IFind { void Find(); }
}
""",
        "A.B A.B.Store A.B.Store.Store A.B.Store.Count A.B.Store.Find A.B.Store.Inner A.B.Store.Inner.Run "
        "A.B.IFind A.B.IFind.Find",
    ),
    Sample(
        "store.rb",
        """module Geo
  # Keeps texts.
  class Store < Base
    def find(name)
      load(name)
    end

    def self.make(path) = new(path)
  end
end
""",
        "Geo Geo::Store Geo::Store::find Geo::Store::make",
    ),
    Sample(
        "store.php",
        """<?php
namespace A;
/** Keeps texts. */
#[Entity]
class Store extends Base {
  public function find($n) { return $this->load($n); }
}
trait T { function t() {} }
function load($n) { return 1; }
""",
        "A Store Store::find T T::t load",
    ),
    Sample("store.sh", "# Loads.\nload() { echo; }\nfunction find { load; }\n", "load find"),
    Sample(
        "store.lua",
        "local function load(n) return n end\nfunction M.find(n) return load(n) end\n"
        "function M:get(n) return n end\nlocal add = function(a) return a end\n",
        "load M.find M.get add",
    ),
    Sample(
        "Store.kt",
        """package store

import disk.load

/** Keeps texts. */
class Store(val path: String) : Base() {
    val size: Int = 1

    fun find(name: String): String {
        val found = load(name)
        return found
    }

    companion object {
        fun make() = Store("x")
    }
}

object Single {
    fun go() {
        Store("x").find("y")
    }
}

interface Named {
    fun name(): String
}

const val LIMIT = 3

fun String.twice() = this + this
""",
        "Store Store.find Store.make Single Single.go Named Named.name twice",
    ),
    Sample(
        "Store.swift",
        """import Disk

/// Keeps texts.
class Store: Base {
    let size: Int = 1
    init(path: String) { self.path = path }
    func find(_ name: String) -> String {
        let found = load(name)
        return found
    }
    var area: Int { 3 }
}

struct Point { var x: Int }

protocol Named { func name() -> String }

extension Store { func more() {} }

let limit = 3
""",
        "Store Store.init Store.find Store.area Point Named Named.name Store Store.more",
    ),
)
