// How an answer was made: what was found, used and cut, as bars, and the same as a table.

import { h } from "./dom.js";

// `open(source, opener)` shows a passage.
export function whyElement(why, open) {
  const found = why.candidates;
  return h("section", { class: "why", "aria-label": "How this answer was made" },
    facts(why.searched),
    found.length > 0 && [picture(found), table(found, open)],
    Object.keys(why.judgement).length > 0 && judgement(why),
    facts(why.answered));
}

const facts = (pairs) => h("dl", {}, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));

// The width is set by the script: the content security policy forbids it in markup.
function bar(share, kind) {
  const filled = h("span", { class: kind });
  filled.style.width = `${Math.round(100 * Math.min(1, Math.max(0, share)))}%`;
  return h("span", { class: "bar" }, filled);
}

function picture(found) {
  const rows = found.map((one) => h("li", {},
    h("span", { class: "name" }, one.n ? `[${one.n}] ` : "", one.location),
    bar(one.score, one.used ? "used" : "cut"),
    one.reranked !== null && bar(one.reranked, one.used ? "used thin" : "cut thin"),
    h("span", { class: "dim" }, `${one.score.toFixed(2)} ${one.used ? "used" : "cut"}: ${one.reason}`)));
  const used = found.filter((one) => one.used).length;
  return h("figure", {},
    h("figcaption", {}, `${found.length} found, ${used} used, ${found.length - used} cut`),
    h("ol", { "aria-hidden": "true" }, rows)); // The table says the same.
}

function table(found, open) {
  const isReranked = found.some((one) => one.reranked !== null);
  return h("details", {}, h("summary", {}, "As a table"), h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Passages" },
    h("table", {},
      h("thead", {}, h("tr", {}, ["No.", "Score", isReranked && "Reranked", "Passage", "Used", "Why"]
        .filter(Boolean).map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, found.map((one) => h("tr", {},
        h("td", {}, one.n ? `${one.n}` : ""), h("td", {}, one.score.toFixed(2)),
        isReranked && h("td", {}, one.reranked?.toFixed(2) ?? ""),
        h("td", {}, h("button", { type: "button", class: "chip", onclick: (event) => open(one, event.currentTarget) },
          one.location), " ", h("span", { class: "dim" }, one.heading)),
        h("td", {}, one.used ? "yes" : "no"), h("td", {}, one.reason)))))));
}

// Signals have different scales: each bar is a share of the largest.
function judgement(why) {
  const { probability = 0, ...signals } = why.judgement;
  const largest = Math.max(1, ...Object.values(signals).map(Math.abs));
  return h("figure", {},
    h("figcaption", {}, `The passages answer with probability ${probability.toFixed(2)}; from ${why.grounded_from} on, the answer counts as grounded`),
    h("ol", {},
      h("li", {}, h("span", { class: "name" }, "probability"), bar(probability, "used"), h("span", { class: "dim" }, probability.toFixed(2))),
      Object.entries(signals).map(([name, value]) => h("li", {},
        h("span", { class: "name" }, name), bar(Math.abs(value) / largest, value < 0 ? "cut" : "used"),
        h("span", { class: "dim" }, value.toFixed(2))))));
}
