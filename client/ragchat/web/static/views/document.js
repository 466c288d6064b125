// A document: what is known of it, and its text, which is loaded as one reads.

import { address, get } from "../api.js";
import { counted, h } from "../dom.js";
import { originalElement, scrollTo, textElement } from "../source.js";

const BEFORE = 20; // lines above the one that the address names

export async function show(main, { query, signal, navigate }) {
  const id = query.get("id") ?? "";
  const wanted = Number(/^#L(\d+)$/.exec(location.hash)?.[1] ?? query.get("line") ?? 1);
  const [chunk, cursor] = [query.get("chunk"), query.get("cursor")];
  const line = Math.max(1, wanted - BEFORE);
  const part = chunk
    ? await get(address("/api/source", { id, chunk, line: wanted }), signal) // a passage that was found
    : await get(address("/api/document", cursor ? { id, cursor } : { id, line }), signal);
  document.title = part.title;
  const facts = [
    part.name !== part.title && part.name,
    `${counted(part.characters, "character")}`,
    `added ${part.added}`,
    part.updated !== part.added && `changed ${part.updated}`,
    part.written_by && `by ${part.written_by}`,
  ].filter(Boolean).join(" · ");
  const number = h("input", { type: "number", min: "1", name: "line", "aria-label": "Line", value: wanted });
  const go = h("form", { class: "go" }, h("label", {}, "Go to line ", number), h("button", {}, "Go"));
  go.addEventListener("submit", (event) => {
    event.preventDefault();
    navigate(`${address("/document", { id, line: number.value })}#L${number.value}`);
  });
  const original = originalElement(part, wanted);
  if (original) original.open = false;
  main.append(
    h("h1", {}, part.title),
    h("p", { class: "facts" }, facts),
    part.note && h("p", { class: "note" }, part.note),
    h("p", { class: "links" },
      h("a", { href: address("/", { in: part.uri }) }, "Ask about this document"),
      h("a", { href: address("/search", { in: part.uri }) }, "Search in it"),
      h("a", { href: address("/library", { document: id }) }, "Versions")),
    go, original ?? "",
    textElement(part, { signal, endless: true, label: part.title }),
  );
  const here = main.querySelector("mark") ?? main.querySelector(`#L${wanted}`);
  if (wanted > 1 || chunk) scrollTo(here);
  if (wanted > 1 && !chunk) here?.classList.add("here");
}
