// Questions to the user: of the page itself, of tools before they run, and of servers.

import { post } from "./api.js";
import { counted, errorBox, h } from "./dom.js";

// Shows a dialog until `answer` accepts a value without throwing. `buttons` are [value, text] pairs; Escape is
// `escape`. `signal` closes it. Resolves with the value, undefined if it was closed.
export function ask({ title, content, buttons, escape, signal, answer = () => {} }) {
  const before = document.activeElement;
  const problem = h("div", {});
  const dialog = h("dialog", { "aria-label": title }, h("h2", {}, title), h("form", { method: "dialog" },
    content, problem,
    h("div", { class: "actions" }, buttons.map(([value, text]) => h("button", { value, formnovalidate: true }, text)))));
  return new Promise((resolve) => {
    const close = (value) => {
      signal?.removeEventListener("abort", closed);
      dialog.close();
      dialog.remove();
      // Closing has given it the focus already, but in Chromium its keys still go nowhere.
      before?.blur();
      if (before?.isConnected) before.focus();
      resolve(value);
    };
    const closed = () => close(undefined);
    const give = async (value) => {
      try {
        await answer(value);
        close(value);
      } catch (error) {
        // A question that is no longer open needs no answer.
        if (error.code === "NOT_FOUND") close(undefined);
        else problem.replaceChildren(errorBox(error));
      }
    };
    dialog.addEventListener("cancel", (event) => (event.preventDefault(), give(escape)));
    dialog.addEventListener("submit", (event) => (event.preventDefault(), give(event.submitter.value)));
    signal?.addEventListener("abort", closed);
    document.body.append(dialog);
    dialog.showModal();
  });
}

export const confirm = async (title, text, yes) => (await ask({
  title, content: h("p", {}, text), buttons: [["no", "Cancel"], ["yes", yes]], escape: "no" })) === "yes";

export async function askForText(title, label, value) {
  const input = h("input", { value, name: "text", autocomplete: "off", onfocus: () => input.select() });
  const pressed = await ask({
    title, content: h("label", {}, label, input), buttons: [["yes", "Save"], ["no", "Cancel"]], escape: "no" });
  return pressed === "yes" ? input.value.trim() : "";
}

// The open questions of one answer, shown one after another.
export class Questions {
  constructor() {
    this.last = Promise.resolve();
    this.open = new Map();
  }

  take(event) {
    if (event.type === "dialog_closed") return this.open.get(event.id)?.abort();
    const closing = new AbortController();
    this.open.set(event.id, closing);
    this.last = this.last.then(() => closing.signal.aborted ? null : KINDS[event.kind](event, closing.signal));
  }

  close() {
    for (const closing of this.open.values()) closing.abort();
  }
}

const reply = (event, body) => post(`/api/dialogs/${event.id}`, body);
// A long one scrolls, also by keyboard.
const quoted = (text) => h("pre", { class: "text", tabindex: "0" }, text);

const KINDS = {
  approval(event, signal) {
    const edited = h("textarea", { rows: `${Math.min(12, event.arguments.split("\n").length + 1)}`, spellcheck: "false", "aria-label": "Arguments as JSON" }, event.arguments);
    return ask({
      title: `Allow ${event.tool}?`, signal, escape: "no",
      content: [
        h("p", {}, `${event.server} would run this tool with these arguments. You may change them.`),
        event.reasons.map(quoted),
        edited,
      ],
      buttons: [["no", "No"], ["once", "Yes, once"], ["session", "In this session"], ["always", "Always"], ["never", "Never"]],
      answer: (decision) => reply(event, { decision, arguments: edited.value === event.arguments ? "" : edited.value }),
    });
  },

  form(event, signal) {
    const fields = event.fields.map(fieldElement);
    return ask({
      title: `${event.server} asks`, signal, escape: "cancel",
      content: [quoted(event.message), fields.map((field) => field.element)],
      buttons: [["accept", `Send to ${event.server}`], ["decline", "Decline"], ["cancel", "Cancel"]],
      answer: (action) => reply(event, {
        action, values: action === "accept" ? Object.fromEntries(fields.map((field) => [field.name, field.value()])) : {},
      }),
    });
  },

  visit(event, signal) {
    return ask({
      title: `${event.server} wants you to open a page`, signal, escape: "cancel",
      content: [
        quoted(event.message),
        h("p", {}, "Address: ", h("code", {}, event.url)), h("p", {}, "Host: ", h("strong", {}, event.host)),
        event.warnings.map((text) => h("p", { class: "error" }, text)),
      ],
      buttons: [["decline", "No"], ["accept", "Open it in a new tab"], ["cancel", "Cancel"]],
      answer: (action) => {
        // Before anything is awaited: a browser opens a tab only at once after a click.
        if (action === "accept") window.open(event.url, "_blank", "noopener,noreferrer");
        return reply(event, { action });
      },
    });
  },

  visited(event, signal) {
    return ask({
      title: "Are you done there?", signal, escape: "cancel",
      content: h("p", {}, `${event.server} waits until you are done on its page.`),
      buttons: [["accept", "Done"], ["cancel", "Cancel"]],
      answer: (action) => reply(event, { action }),
    });
  },

  sampling(event, signal) {
    return ask({
      title: `${event.server} wants to ask ${event.model}`, signal, escape: "no",
      content: [
        h("p", {}, `For at most ${counted(event.tokens, "token")}:`),
        event.messages.map(([role, text]) => [h("h3", {}, role), quoted(text)]),
      ],
      buttons: [["no", "No"], ["once", "Yes, once"], ["session", "In this session"], ["never", "Never"]],
      answer: (decision) => reply(event, { decision }),
    });
  },

  reply(event, signal) {
    return ask({
      title: `Send this reply to ${event.server}?`, signal, escape: "no",
      content: [h("p", {}, `${event.model} replied:`), quoted(event.text)],
      buttons: [["no", "No"], ["once", "Send"]],
      answer: (decision) => reply(event, { decision }),
    });
  },
};

// A field of a form: {name, element, value()}.
function fieldElement(field, index) {
  const id = `field-${index}`;
  const isSet = field.type === "array" && field.choices.length > 0;
  const hint = [field.constraints, !field.required && "may be left out"].filter(Boolean).join(", ");
  const notes = [
    h("p", { class: "dim", id: `${id}-hint` }, [field.description, `(${hint})`].filter(Boolean).join(" ")),
    field.warning && h("p", { class: "error" }, field.warning),
  ];
  if (isSet) {
    const boxes = field.choices.map(([value, title]) =>
      h("label", {}, h("input", { type: "checkbox", value, checked: field.chosen.includes(value) }), title));
    return {
      name: field.name,
      element: h("fieldset", {}, h("legend", {}, field.title), notes, boxes),
      value: () => boxes.map((box) => box.firstChild).filter((box) => box.checked).map((box) => box.value),
    };
  }
  const choices = field.type === "boolean" ? [["y", "yes"], ["n", "no"]] : field.choices;
  const attributes = { id, "aria-describedby": `${id}-hint`, "aria-required": `${field.required}` };
  // Of a field with choices, the default is shown by its title.
  const isDefault = ([value, title]) => [value, title].includes(field.default);
  const input = choices.length
    ? h("select", attributes, h("option", { value: "" }, ""),
        choices.map((choice) => h("option", { value: choice[0], selected: isDefault(choice) }, choice[1])))
    : h("input", { ...attributes, value: field.default, autocomplete: "off" });
  return {
    name: field.name,
    element: h("div", { class: "field" }, h("label", { for: id }, field.title), notes, input),
    value: () => input.value,
  };
}
