// Search while one types. The address holds the query, so that the back button finds it again.

import { address, get } from "../api.js";
import { build, counted, errorBox, h, say } from "../dom.js";

const FILTERS = { in: "In", tag: "Tag", kind: "Kind", after: "From", before: "Until" };
const PATIENCE_MILLISECONDS = 200;
const OFFERED = { in: "folders", tag: "tags", kind: "kinds" };
// What the user typed into the form of the page without scripts, before this was loaded.
let typed = document.querySelector("form.search [name=q]")?.value;

export async function show(main, { query, signal }) {
  const input = h("input", { type: "search", name: "q", "aria-label": "Search", value: typed || (query.get("q") ?? ""),
                             autocomplete: "off", placeholder: "Search in memory" });
  typed = "";
  const fields = Object.entries(FILTERS).map(([name, label]) => {
    const type = name === "after" || name === "before" ? "date" : "text";
    const field = h("input", { name, type, value: query.get(name) ?? "", list: OFFERED[name] && `offered-${name}`,
                               autocomplete: "off" });
    return h("label", {}, `${label} `, field);
  });
  const filters = h("details", { class: "filters", open: Object.keys(FILTERS).some((name) => query.get(name)) },
    h("summary", {}, "Filters"), h("div", {}, fields));
  const form = h("form", { class: "search", role: "search" }, input, filters);
  const notes = h("div", { class: "notes" });
  const hits = h("ol", { class: "hits" });
  const more = h("button", { type: "button", hidden: true, onclick: () => search({ more: "1" }) }, "More passages");
  main.append(h("h1", { class: "unseen" }, "Search"), form, notes, hits, more);

  let running = null;
  let isTyping = false; // since the last search began
  let isWaiting = false;
  const given = () => Object.fromEntries(new FormData(form));

  async function search(extra = {}) {
    running?.abort();
    const own = (running = new AbortController());
    const asked = given();
    let found = { hits: [], notes: [], more: false };
    try {
      const answer = asked.q.trim() ? get(address("/api/search", { ...asked, ...extra }), own.signal) : found;
      history.replaceState(history.state, "", address("/search", asked)); // while memory searches
      found = await answer;
      if (own !== running || signal.aborted) return; // a later search has begun
      notes.replaceChildren(...found.notes.map((note) => h("p", {}, note)));
    } catch (error) {
      if (own !== running || error.name === "AbortError") return;
      notes.replaceChildren(errorBox(error));
    }
    hits.replaceChildren(...found.hits.map(hitElement));
    more.hidden = !found.more;
    if (asked.q.trim()) say(counted(found.hits.length, "passage"));
  }

  // A hit that is reached with the keyboard is shown whole, another one if its text is clicked. It stays so: what
  // shrinks when it is left moves the link below from under the pointer.
  const showWhole = (element) => element.closest("li").classList.add("whole");
  hits.addEventListener("focusin", ({ target }) => target.matches(":focus-visible") && showWhole(target));

  function hitElement(hit, index) {
    const link = h("a", { href: `${address("/document", { id: hit.document_id, line: hit.line, chunk: hit.chunk_id })}#L${hit.line}`,
                          onclick: () => history.replaceState({ hit: index }, "") }, hit.title);
    return h("li", {},
      h("h2", {}, link),
      h("p", { class: "place" }, hit.place, hit.heading && ` — ${hit.heading}`),
      h("p", { class: "passage", onclick: (event) => showWhole(event.target) }, build(hit.nodes)));
  }

  // At once: a pause would be longer than most searches take. What is typed meanwhile waits for a search, unless
  // that takes long: then it takes its place.
  form.addEventListener("input", async () => {
    isTyping = true;
    if (isWaiting) return;
    isWaiting = true;
    while (isTyping && !signal.aborted) {
      isTyping = false;
      await Promise.race([search(), new Promise((done) => setTimeout(done, PATIENCE_MILLISECONDS))]);
    }
    isWaiting = false;
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = hits.querySelector("a");
    if (document.activeElement === input && first) first.click();
    else search();
  });
  main.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [input, ...hits.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    links[Math.min(Math.max(at + step, 0), links.length - 1)].focus();
  }, { signal });
  signal.addEventListener("abort", () => {
    running?.abort();
  });

  const offer = async () => {
    filters.removeEventListener("toggle", offer);
    try {
      const offered = await get("/api/filters", signal);
      for (const [name, key] of Object.entries(OFFERED)) {
        const options = offered[key].map(([value, count]) => h("option", { value }, `${value} (${count})`));
        filters.append(h("datalist", { id: `offered-${name}` }, options));
      }
    } catch (error) {
      if (error.name !== "AbortError") filters.append(errorBox(error));
    }
  };
  filters.addEventListener("toggle", offer);

  const opened = history.state?.hit;
  input.focus();
  input.setSelectionRange(input.value.length, input.value.length);
  await search();
  if (opened !== undefined) hits.querySelectorAll("a")[opened]?.focus();
}
