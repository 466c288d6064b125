// The conversations at the side: their list, or those that contain some words.

import { address, get } from "./api.js";
import { errorBox, h, say } from "./dom.js";

const WAIT_MILLISECONDS = 200;

// `current()` is the id of the one that is shown. `refresh()` returns the list.
export function sessionPanel(current, signal) {
  const list = h("ul", {});
  const words = h("input", { type: "search", "aria-label": "Search conversations", placeholder: "Search" });
  const wide = matchMedia("(min-width: 60rem)");
  const element = h("details", { class: "sessions", open: wide.matches },
    h("summary", {}, "Conversations"),
    h("nav", { "aria-label": "Conversations" }, h("a", { href: "/", class: "new" }, "New conversation"), words, list));

  let asked = 0;
  async function refresh() {
    const number = ++asked;
    try {
      const { sessions } = await get(address("/api/sessions", { q: words.value.trim() }), signal);
      if (number !== asked) return [];
      list.replaceChildren(...sessions.map((one) => h("li", {}, h("a", {
        href: address(`/sessions/${one.session_id}`, { turn: one.turn_id }),
        "aria-current": one.session_id === current() && "page",
      }, one.title || "(no name)", h("small", {}, one.snippet ?? one.at)))));
      if (words.value.trim()) say(sessions.length === 1 ? "1 answer found." : `${sessions.length} answers found.`);
      return sessions;
    } catch (error) {
      if (error.name !== "AbortError") list.replaceChildren(h("li", {}, errorBox(error)));
      return [];
    }
  }

  let timer;
  words.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, WAIT_MILLISECONDS);
  });
  return { element, refresh };
}
