// The text of a document: what is around a citation, beside its answer, and the text that grows as one reads.

import { address, get } from "./api.js";
import { errorBox, h } from "./dom.js";

const ABOVE = 100; // lines
const MOST_PARTS = 8; // of 64 KB, in the page at once
const opening = new WeakMap(); // what each container is loading

// Fill a container with a source, its cited lines marked and in view.
export async function openSource(container, cited) {
  opening.get(container)?.abort();
  const loading = new AbortController();
  opening.set(container, loading);
  const { documentId, uri, title, location, startLine, endLine, quoteStartLine, quoteEndLine, quote, chunkId } = cited;
  const line = quoteStartLine ?? startLine;
  const heading = h("h2", { tabindex: "-1" }, title || uri);
  container.replaceChildren(heading, h("p", { class: "place" }, location ?? ""));
  try {
    const part = await get(address("/api/source", {
      id: documentId, line, end: quoteEndLine ?? endLine, chunk: chunkId,
      quote: quoteStartLine ? quote : "", // what was not found in the passage is not found here
    }), loading.signal);
    const text = textElement(part, { signal: loading.signal });
    text.classList.add("boxed");
    const here = part.marked[0]?.line ?? line;
    container.replaceChildren(heading, h("p", { class: "place" }, part.place),
      part.note && h("p", { class: "note" }, part.note), text,
      h("p", {}, h("a", { href: `${address("/document", { id: documentId, line: here })}#L${here}` },
        "Whole document")), originalElement(part, here) ?? "");
    center(text, text.querySelector("mark"));
  } catch (error) {
    if (error.name === "AbortError") return;
    container.append(errorBox(error));
    if (quote) container.append(h("p", {}, "This is what the answer quotes:"), h("blockquote", {}, quote));
  }
}

export function scrollTo(element) {
  element?.scrollIntoView({ block: "center", behavior: "instant" });
}

// Scroll a box alone: the answer beside it stays where it is.
function center(box, element) {
  if (!element) return;
  const [outer, inner] = [box.getBoundingClientRect(), element.getBoundingClientRect()];
  box.scrollTop += inner.top - outer.top - Math.max(0, (outer.height - inner.height) / 2);
}

// The page of a PDF that a line is on, or the image that a text describes; null if this machine has no such file.
export function originalElement(part, line) {
  if (!part.original) return null;
  const page = part.pages.filter(([first]) => first <= line).at(-1)?.[1] ?? 1;
  const name = part.original === "page" ? `Page ${page} of ${part.name}` : part.name;
  const source = address("/api/original", { id: part.document_id, page });
  const image = h("img", { src: source, alt: name, loading: "lazy" });
  image.addEventListener("error", () => get(source).catch((error) => image.replaceWith(errorBox(error))));
  return h("details", { class: "original", open: true }, h("summary", {}, name), image);
}

// A part of a document and what one loads around it. With `endless`, more is loaded as one scrolls.
export function textElement(first, { signal, endless = false, label = "Text" }) {
  const above = h("button", { type: "button", onclick: () => load(loadAbove) }, "More above");
  const below = h("button", { type: "button", onclick: () => load(loadBelow) }, "More below");
  const box = h("div", { class: "text", role: "region", "aria-label": label, tabindex: "0" }, above, below);
  const shown = [];
  const left = []; // the requests of parts that were removed above
  let busy = false;

  const ask = (request) => get(address("/api/document", { id: first.document_id, ...request }), signal);

  function put(part, request, next) {
    const entry = { part, request, element: h("div", { class: "part" }, listElement(part)) };
    shown.splice(next ? shown.indexOf(next) : shown.length, 0, entry);
    (next?.element ?? below).before(entry.element);
    if (request.end && part.next) entry.element.append(restButton(entry));
    return entry;
  }

  // Lines between two parts that are too long to be loaded at once.
  function restButton(entry) {
    const button = h("button", { type: "button" }, "Long lines are left out here: load more of them");
    button.addEventListener("click", () => load(async () => {
      const request = { ...entry.request, cursor: entry.part.next };
      const part = { ...(await ask(request)), begins: entry.part.ends };
      button.remove();
      put(part, request, shown[shown.indexOf(entry) + 1]);
    }));
    return button;
  }

  async function loadAbove() {
    const [top] = shown;
    const removed = left.at(-1);
    const request = removed ?? { line: Math.max(1, top.part.start_line - ABOVE), end: top.part.start_line - 1 };
    const part = await ask(request);
    if (removed) left.pop();
    keepingPart(top.element, () => {
      put({ ...part, begins: request.begins ?? true }, request, top);
      while (shown.length > MOST_PARTS) shown.pop().element.remove();
    });
  }

  async function loadBelow() {
    const last = shown.at(-1);
    const request = { line: 1, cursor: last.part.next, begins: last.part.ends };
    const part = { ...(await ask(request)), begins: request.begins };
    keepingPart(last.element, () => {
      put(part, request);
      while (shown.length > MOST_PARTS) {
        const { request, element } = shown.shift();
        left.push(request);
        element.remove();
      }
    });
  }

  async function load(more) {
    if (busy) return;
    busy = true;
    try {
      await more();
      update();
    } catch (error) {
      if (error.name === "AbortError") return;
      watching?.disconnect();
      box.append(errorBox(error));
    } finally {
      busy = false;
    }
  }

  function update() {
    const [top] = shown;
    above.hidden = !left.length && (top.part.start_line === 1 || !top.part.begins);
    below.hidden = !shown.at(-1).part.next;
    for (const button of watching ? [above, below] : []) {
      watching.unobserve(button); // it is reported again, in case it is still in view
      watching.observe(button);
    }
  }

  const watching = endless && new IntersectionObserver((entries) => {
    const seen = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
    if (seen.includes(below)) load(loadBelow);
    else if (seen.includes(above)) load(loadAbove);
  }, { rootMargin: "500px" });
  signal.addEventListener("abort", () => watching && watching.disconnect());

  put(first, { line: first.start_line });
  if (!first.begins) {
    box.prepend(h("p", { class: "note" }, `Line ${first.start_line} is long, and begins before this.`));
  }
  update();
  return box;
}

function listElement({ start_line, lines, begins, marked }) {
  const marks = new Map(marked.map((one) => [one.line, one]));
  return h("ol", { class: "lines", start: start_line }, lines.map((line, index) => {
    const number = start_line + index;
    const mark = marks.get(number);
    const text = mark ? [mark.before, h("mark", {}, mark.quoted), mark.after] : [line];
    // The rest of a line has no number: that is at its beginning.
    return index || begins ? h("li", { id: `L${number}` }, text) : h("li", { class: "rest" }, text);
  }));
}

// Change a text without moving a part that the user may be reading, in its own box or the page; once, as they may scroll on.
function keepingPart(element, change) {
  const before = element.getBoundingClientRect().top;
  change();
  const moved = element.isConnected ? element.getBoundingClientRect().top - before : 0;
  let scroller = element.parentElement;
  while (scroller && !/auto|scroll/.test(getComputedStyle(scroller).overflowY)) scroller = scroller.parentElement;
  (scroller ?? document.scrollingElement).scrollBy({ top: moved, behavior: "instant" });
}
