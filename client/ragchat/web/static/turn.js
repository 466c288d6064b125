// One question and its answer: while it streams in, and when it is finished.

import { get, post } from "./api.js";
import { ask } from "./dialogs.js";
import { build, errorBox, h, say } from "./dom.js";
import { whyElement } from "./why.js";

const button = (text, onclick, more = {}) => h("button", { type: "button", onclick, ...more }, text);

// An answer that streams in. `element` is its article; `show` takes the events of the stream.
export class LiveTurn {
  constructor(question) {
    this.answer = h("div", { class: "answer" });
    this.notes = h("ul", { class: "notes", hidden: true });
    this.thoughts = h("pre", {});
    this.reasoning = h("details", { hidden: true }, h("summary", {}, "Reasoning"), this.thoughts);
    this.progress = h("p", { class: "progress" }, "Starting");
    this.element = h("article", { class: "turn", "aria-busy": "true" },
      h("h2", {}, question), this.notes, this.reasoning, this.answer, this.progress);
  }

  show(event) {
    switch (event.type) {
      case "rephrasing": return this.wait("Asking for other wordings");
      case "retrieving": return this.wait("Searching");
      case "retrieved": return this.wait("Thinking");
      case "progress": return this.wait(event.text);
      case "tool_started":
        this.wait(`Calling ${event.name}`);
        return this.note(`${event.name} ${event.arguments}`);
      case "tool_finished":
        this.wait("Thinking");
        return this.note(`${event.name}: ${event.summary}`, event.ok ? "" : "error");
      case "notice": return this.note(event.text);
      case "reasoning":
        this.reasoning.hidden = false;
        return this.thoughts.append(event.text);
      case "blocks":
        while (this.answer.childNodes.length > event.from) this.answer.lastChild.remove();
        this.answer.append(...build(event.nodes, (n) => h("span", { class: "chip" }, `${n}`)));
        return this.wait("Writing");
    }
  }

  wait(text) {
    if (this.progress.textContent !== text) this.progress.textContent = text;
  }

  note(text, kind) {
    this.notes.hidden = false;
    this.notes.append(h("li", { class: kind }, text));
  }

  fail(element) {
    this.progress.replaceWith(element);
    this.element.classList.add("failed");
    this.element.removeAttribute("aria-busy");
  }

  // The finished turn in its place, with the notes and the reasoning, which are not stored.
  finish(element) {
    element.querySelector(".notes")?.remove();
    element.querySelector("h2").after(this.notes, this.reasoning);
    this.element.replaceWith(element);
  }
}

export const turnId = (article) => article?.id.replace("turn-", "") ?? "";

// `view` is {sessionId(), open(source, chip), edit(turn, question), retry()}.
export function turnElement(turn, view) {
  const chip = chipMaker(turn, view);
  const why = h("div", { hidden: true });
  const sources = sourceList(turn, view);
  const path = () => `/api/sessions/${view.sessionId()}/turns/${turn.turn_id}`;
  const article = h("article", { class: "turn", id: `turn-${turn.turn_id}` },
    h("h2", {}, turn.question),
    turn.notices.length > 0 && h("ul", { class: "notes" }, turn.notices.map((text) => h("li", {}, text))),
    h("div", { class: "answer" },
      turn.before && h("p", { class: "dim" }, turn.before),
      turn.cards.map((card) => cardElement(card, chip)),
      turn.after && h("p", { class: "dim" }, turn.after),
      ...build(turn.nodes, chip)),
    h("p", { class: "dim" }, turn.summary),
    h("div", { class: "actions", role: "group", "aria-label": "Actions" },
      turn.more && button("More cards", attempt(async () => {
        const more = turnElement(await get(`${path()}/more`), view);
        article.replaceWith(more);
        more.querySelectorAll(".card")[turn.cards.length]?.querySelector("button").focus();
      })),
      sources && opens("Sources", sources),
      opens("Why", why, async () => why.replaceChildren(whyElement(await get(`${path()}/why`), view.open))),
      button("Copy", attempt(async (event) => {
        await navigator.clipboard.writeText(turn.answer);
        event.target.textContent = "Copied";
        say("The answer is copied.");
      }), { name: "Copy" }),
      turn.is_report && button("Store in memory", attempt(async (event) => {
        const pressed = event.target;
        const stored = await post(`${path()}/store`);
        if (stored.error) throw { message: stored.error };
        pressed.textContent = "Stored";
        pressed.disabled = true;
        say(`Stored as ${stored.uri}.`);
      })),
      ...verdicts(view),
      button("Edit", () => editQuestion(article, turn, view)),
      button("Retry", () => view.retry(), { class: "retry" })),
    sources, why);
  return article;
}

// Saves the answer as a case, with the verdict of the pressed button.
export async function judge(pressed, sessionId, place) {
  const turn = turnId(pressed.closest("article"));
  say((await post(`/api/sessions/${sessionId}/turns/${turn}/verdict`, { verdict: pressed.value, place })).said);
  for (const other of pressed.parentElement.querySelectorAll("[value]")) other.setAttribute("aria-pressed", `${other === pressed}`);
}

function verdicts(view) {
  const placed = async (event) => {
    const pressed = event.currentTarget ?? event.target;
    const place = h("input", { name: "text", autocomplete: "off", placeholder: "2, notes.md:3-5, or nowhere" });
    await ask({
      title: "A bad answer", content: h("label", {}, "The right place, if you know it", place),
      buttons: [["yes", "Save"], ["no", "Cancel"]], escape: "no",
      answer: (value) => value === "yes" && judge(pressed, view.sessionId(), place.value.trim()),
    });
  };
  return [
    button("Good", attempt((event) => judge(event.currentTarget ?? event.target, view.sessionId(), "")), { value: "good", "aria-pressed": "false" }),
    button("Bad", attempt(placed), { value: "bad", "aria-pressed": "false" }),
  ];
}

// What is known of a turn besides its answer: the verdict, and what has changed since.
export function mark(article, { verdict, changed }) {
  article.querySelector(`[value="${verdict}"]`)?.setAttribute("aria-pressed", "true");
  if (changed.length) article.querySelector(".answer").before(h("p", { class: "stale" }, `Changed since this answer: ${changed.join(", ")}`));
}

// Runs an action; its error is shown below the buttons.
function attempt(action) {
  return async (event) => {
    const group = event.target.parentElement;
    group.querySelector(".error")?.remove();
    try {
      await action(event);
    } catch (error) {
      group.append(errorBox(error.message ? error : { message: "This did not work.", hint: "" }));
    }
  };
}

// A button that shows and hides an element, which `fill` fills at first.
function opens(text, element, fill = null) {
  return button(text, attempt(async (event) => {
    const pressed = event.currentTarget ?? event.target;
    const isOpening = element.hidden;
    if (isOpening && fill && !element.childNodes.length) await fill();
    element.hidden = !isOpening;
    pressed.setAttribute("aria-expanded", `${isOpening}`);
    if (isOpening) element.scrollIntoView({ block: "nearest" });
  }), { "aria-expanded": "false" });
}

function chipMaker(turn, view) {
  const met = new Map();
  return (n, ...label) => {
    const found = turn.sources.filter((source) => source.n === n);
    const count = met.get(n) ?? 0;
    met.set(n, count + 1);
    const source = found[Math.min(count, found.length - 1)];
    if (!source) return h("span", { class: "chip unknown", title: "There is no such passage." }, `${n}`);
    return chipButton(source, view, ...label);
  };
}

function chipButton(source, view, ...label) {
  return h("button", {
    type: "button", class: "chip", title: source.location,
    "aria-label": label.length ? null : `Source ${source.n}: ${source.location}`,
    onclick: (event) => view.open(source, event.currentTarget),
  }, `${source.n}`, ...label);
}

function cardElement(card, chip) {
  return h("figure", { class: "card" },
    h("figcaption", {}, chip(card.n, " ", card.location), " ", h("span", { class: "dim" }, card.headings)),
    h("blockquote", { class: "text" }, build(card.nodes)));
}

function sourceList(turn, view) {
  if (!turn.sources.length || turn.cards.length) return null;
  return h("ul", { class: "sources", hidden: true }, turn.sources.map((source) => h("li", {},
    chipButton(source, view, " ", source.location), " ",
    h("span", { class: "dim" }, [source.heading, source.score?.toFixed(2)].filter(Boolean).join("  ")),
    source.quote && h("blockquote", { class: "text" }, source.quote),
    source.verified === false && h("p", { class: "error" }, "This quotation was not found there."))));
}

function editQuestion(article, turn, view) {
  const text = h("textarea", { rows: "3", "aria-label": "Other wording" }, turn.question);
  const heading = article.querySelector("h2");
  const before = document.activeElement;
  const close = () => (form.replaceWith(heading), before.focus());
  const form = h("form", {
    class: "edit",
    onsubmit: (event) => {
      event.preventDefault();
      if (text.value.trim()) view.edit(article, turn, text.value.trim()).catch((error) => form.append(errorBox(error)));
    },
    onkeydown: (event) => event.key === "Escape" && (close(), event.stopPropagation()),
  }, text, h("div", { class: "actions" }, h("button", {}, "Ask in a copy"), button("Cancel", close)),
    h("p", { class: "dim" }, "The conversation so far is copied, and goes on from here."));
  heading.replaceWith(form);
  text.focus();
}
