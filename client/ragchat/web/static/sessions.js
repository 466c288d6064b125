// The notebooks and conversations at the side: their lists, or the conversations that contain some words.

import { address, get } from "./api.js";
import { counted, errorBox, h, say } from "./dom.js";

const WAIT_MILLISECONDS = 200;

export const placeOf = (notebook) => notebook ? `/notebooks/${encodeURIComponent(notebook)}` : "/";

// `current()` is the id of the conversation that is shown, and `notebook()` the notebook, "" for none.
// `refresh()` returns the list of conversations, those of the notebook.
export function sessionPanel(current, notebook, signal) {
  const list = h("ul", {});
  const places = h("ul", { "aria-label": "Notebooks" });
  const fresh = h("a", {}, "New conversation");
  const words = h("input", { type: "search", "aria-label": "Search conversations", placeholder: "Search" });
  const wide = matchMedia("(min-width: 60rem)");
  const element = h("details", { class: "sessions", open: wide.matches },
    h("summary", {}, "Conversations"),
    h("nav", { "aria-label": "Conversations" }, places, fresh, words, list));

  let asked = 0;
  async function refresh() {
    const number = ++asked;
    fresh.href = placeOf(notebook());
    try {
      const { sessions } = await get(address("/api/sessions", { q: words.value.trim(), notebook: notebook() }), signal);
      if (number !== asked) return [];
      list.replaceChildren(...sessions.map((one) => h("li", {}, h("a", {
        href: address(`/sessions/${one.session_id}`, { turn: one.turn_id }),
        "aria-current": one.session_id === current() && "page",
      }, one.title || "(no name)",
        h("small", {}, one.snippet ?? (one.notebook && !notebook() ? `${one.at} · ${one.notebook}` : one.at))))));
      if (words.value.trim()) say(`${counted(sessions.length, "answer")} found.`);
      return sessions;
    } catch (error) {
      if (error.name !== "AbortError") list.replaceChildren(h("li", {}, errorBox(error)));
      return [];
    }
  }

  // Without notebooks, nothing is shown.
  function showPlaces({ notebooks, failed }) {
    const link = (name, text, scope) => h("li", {}, h("a", {
      href: placeOf(name), "aria-current": name === notebook() && "page",
    }, text, scope && h("small", {}, scope)));
    places.replaceChildren(...(notebooks.length ? [link("", "All conversations")] : []),
      ...notebooks.map((one) => link(one.name, one.name, one.scope || "all documents")),
      ...failed.map((text) => h("li", {}, errorBox({ message: text }))));
  }

  let timer;
  words.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, WAIT_MILLISECONDS);
  });
  function search(asked) {
    element.open = true;
    words.value = asked;
    words.focus();
    refresh();
  }
  return { element, refresh, search, showPlaces };
}
