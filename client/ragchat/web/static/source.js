// The place of a citation in its document.

import { h } from "./dom.js";

export async function openSource(container, source) {
  container.replaceChildren(h("h2", {}, source.location), h("blockquote", { class: "text" }, source.quote));
}
