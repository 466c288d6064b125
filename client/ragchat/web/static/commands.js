// The commands of the field for questions, offered while one types a slash.

import { counted, h, say } from "./dom.js";

// `commands` are {name: [what it does, action(words)]}; a description that begins in capitals needs words, in [capitals]
// it takes them. `hint` shows a remark, "" none. Returns the list, and `run`, which takes a line that begins with a slash.
export function commandMenu(question, commands, { guarded, hint }) {
  const element = h("ul", { class: "commands", hidden: true, "aria-label": "Commands" });

  function run(line) {
    const [, name, words] = /^\/([\w-]*)\s*(.*)$/s.exec(line);
    if (!Object.hasOwn(commands, name)) throw { message: `/${name} is not on this page.`, hint: "The commands of the terminal work in `ragchat`; /help lists them there." };
    if (words.trim() && !/^\[?[A-Z]/.test(commands[name][0])) throw { message: `/${name} takes no words here.` };
    question.value = "";
    offer();
    return commands[name][1](words.trim());
  }

  function choose(name) {
    question.focus();
    if (/^[A-Z]/.test(commands[name][0])) question.value = `/${name} `;
    else guarded(run)(`/${name}`);
    offer();
  }

  function offer() {
    const typed = /^\/([\w-]*)$/.exec(question.value);
    const names = typed ? Object.keys(commands).filter((name) => name.startsWith(typed[1])) : [];
    const isNew = element.hidden;
    element.hidden = !names.length;
    element.replaceChildren(...names.map((name) => h("li", {},
      h("button", { type: "button", onclick: () => choose(name) }, h("strong", {}, `/${name}`), ` ${commands[name][0]}`))));
    if (isNew && names.length) say(`${counted(names.length, "command")}: press the down arrow.`);
    hint(typed?.[1] && !names.length ? `/${typed[1]} is not on this page; it may be a command of the terminal.` : "");
  }

  question.addEventListener("input", offer);
  question.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" || element.hidden) return;
    event.preventDefault();
    element.querySelector("button")?.focus();
  });
  element.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") question.focus();
    if (!step) return;
    event.preventDefault();
    const buttons = [...element.querySelectorAll("button")];
    (buttons[buttons.indexOf(document.activeElement) + step] ?? question).focus();
  });
  return { element, run };
}
