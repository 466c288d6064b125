// The conversation: questions, answers that stream in, their sources, and the other conversations.

import { address, get, post, remove, stream } from "../api.js";
import { commandMenu } from "../commands.js";
import { askForText, confirm, Questions } from "../dialogs.js";
import { counted, errorBox, h, say } from "../dom.js";
import { placeOf, sessionPanel } from "../sessions.js";
import { openSource } from "../source.js";
import { judge, LiveTurn, turnElement, turnId } from "../turn.js";
import { keeping, scrollToTurn, turnList } from "../turns.js";

// Of this tab, for every conversation of the notebook `place`.
const chosen = { scope: "", model: "" };
let place = "";
let failure = null;

export async function show(main, { params, query, signal, navigate }) {
  let id = params.id ?? null;
  let isStored = id !== null;
  let opening = null; // the first turns, while they are loaded
  let running = false;
  let listed = null; // resolves when the models are known
  let notebook = decodeURIComponent(params.notebook ?? "").toLowerCase();
  if (query.get("in")) [place, chosen.scope] = [notebook, query.get("in")];

  const problems = h("div", {});
  const path = () => `/api/sessions/${id}`;

  // An action; its error is shown above the question.
  function guarded(action) {
    return async (...given) => {
      problems.replaceChildren();
      try {
        return await action(...given);
      } catch (error) {
        if (error.name !== "AbortError") problems.replaceChildren(errorBox(error));
      }
    };
  }

  const view = { sessionId: () => id, open: (source, chip) => panel.open(source, chip), edit, retry };
  const shown = turnList({ path, view, signal, guarded, fail: (error) => problems.replaceChildren(errorBox(error)) });
  const turns = shown.element;

  // Asking

  const question = h("textarea", { name: "question", rows: "2", "aria-label": "Question", placeholder: "Ask your documents, or type / for commands" });
  const button = h("button", { class: "primary" }, "Ask");
  const stop = h("button", { type: "button", hidden: true, onclick: guarded(() => post(`${path()}/stop`)) }, "Stop");
  const mode = h("select", { "aria-label": "Mode" },
    h("option", { value: "ask" }, "Answer"), h("option", { value: "research" }, "Research report"));
  const model = h("select", { "aria-label": "Model", onchange: () => { chosen.model = model.value; } },
    h("option", { value: "" }, "Model as configured"));
  const scope = h("input", { "aria-label": "In", placeholder: "all documents", onchange: guarded(narrow) });
  const everywhere = h("button", { type: "button", hidden: true, onclick: guarded(() => (scope.value = "", narrow())) }, "Ask all");
  const summary = h("summary", {}, "Options");
  const options = h("details", { class: "options", open: matchMedia("(min-width: 40rem) and (min-height: 36rem)").matches }, summary,
    h("div", { class: "actions" }, mode, h("label", {}, "In ", scope), everywhere, model));
  const action = (text) => {
    const answered = [...turns.querySelectorAll(".turn:not(.failed)")].at(-1);
    const found = [...(answered?.querySelectorAll(".actions > button") ?? [])].find((one) => [one.textContent, one.name].includes(text));
    if (!found) throw { message: `The last answer has no “${text}”.` };
    return found;
  };
  const press = (text) => action(text).click();
  const commands = commandMenu(question, {
    more: ["more cards of the last answer", () => press("More cards")],
    why: ["how the last answer was made", () => press("Why")],
    sources: ["the passages that the last answer cites", () => press("Sources")],
    retry: ["ask the last question again", () => press("Retry")],
    good: ["[PLACE]: the last answer is right", (place) => judge(action("Good"), id, place)],
    bad: ["[PLACE]: the last answer is wrong", (place) => place ? judge(action("Bad"), id, place) : press("Bad")],
    copy: ["copy the last answer", () => press("Copy")],
    research: ["QUESTION: write a cited report", (words) => words ? run("research", words) : reports()],
    in: ["DOCUMENTS: ask only these; * asks all", (words) => (scope.value = words, narrow())],
    model: ["[NAME]: choose the model", choose],
    notebook: ["NAME: go to a notebook; - leaves it", (words) => navigate(placeOf(words === "-" ? "" : words))],
    new: ["start a new conversation", () => navigate(placeOf(notebook))],
    sessions: ["[WORDS]: list or search conversations", (words) => list.search(words)],
    export: ["save this conversation as a file", save],
    query: ["TEXT: search memory", (words) => navigate(address("/search", { q: words }))],
    inject: ["load files and folders", () => navigate("/library")],
    memory: ["the documents in memory", () => navigate("/library")],
    mcp: ["other servers", () => navigate("/setup")],
  }, { guarded, hint: (text) => problems.replaceChildren(...(text ? [h("p", { class: "dim" }, text)] : [])) });
  const form = h("form", { class: "ask" }, problems, commands.element, question,
    h("div", { class: "actions" }, button, stop, options));

  // `found` resolves with the notebook.
  async function listModels(found) {
    try {
      const known = await get("/api/models", signal);
      model.append(...known.choices.map((name) => h("option", { value: name, selected: name === chosen.model }, name)));
      model.title = known.failed;
      const place = await found;
      model.firstElementChild.textContent = place?.model ? `${place.model} (of the notebook)` : `${known.name} (as configured)`;
    } catch (error) {
      if (error.name !== "AbortError") model.title = error.message;
    }
  }

  async function choose(name) {
    options.open = true;
    if (!name) return model.focus();
    await listed; // A server of models that is gone takes a while.
    const names = [...model.options].map((one) => one.value).filter(Boolean);
    if (!names.includes(name)) throw { message: `There is no model ${name}.`, hint: names.length ? `There are ${names.join(", ")}.` : "" };
    chosen.model = model.value = name;
    say(`${name} answers now.`);
  }

  async function narrow() {
    try {
      chosen.scope = (await get(address("/api/scope", { name: scope.value.trim() }), signal)).name;
      if (query.get("in")) history.replaceState(null, "", location.pathname); // It would be chosen again.
      say(chosen.scope ? `Only ${chosen.scope} is asked.` : notebook ? "The whole notebook is asked." : "All documents are asked.");
    } finally {
      showScope(); // An error changes nothing.
    }
  }

  // Also where the options are closed.
  function showScope() {
    [scope.value, everywhere.hidden] = [chosen.scope, !chosen.scope];
    summary.textContent = chosen.scope ? `Options: only ${chosen.scope}` : "Options";
  }

  function reports() {
    mode.value = "research";
    options.open = true;
    say("Each answer is a report now.");
  }

  function save() {
    const file = head.querySelector("a[download]");
    if (!file) throw { message: "There is no answer to save yet." };
    file.click();
  }

  const wait = () => problems.replaceChildren(errorBox({ message: "Wait for the answer, or stop it." }));

  // What a screen reader is told of the answer that has just come.
  const tell = (turn) => say([`The answer is there, with ${counted(turn.sources.length, "source")}.`, ...turn.notices].join(" "));

  // Ask; of `kind` "answer": show the answer that goes on since this conversation was left.
  async function run(kind, asked) {
    if (running) return wait();
    [running, button.disabled, stop.hidden, stop.disabled] = [true, true, false, true];
    problems.replaceChildren();
    for (const failed of turns.querySelectorAll(".failed")) failed.remove();
    const live = new LiveTurn(asked || turns.lastElementChild?.querySelector("h2").textContent);
    const questions = new Questions();
    let isNew = false;
    let isForgotten = false;
    try {
      await opening;
      if (!shown.later.hidden) await shown.showNewest();
      const replaced = kind === "retry" ? turns.lastElementChild : null;
      const last = turnId(turns.lastElementChild);
      if (replaced) replaced.hidden = true;
      turns.append(live.element);
      if (kind === "answer") scrollToTurn(live.element);
      else live.element.scrollIntoView({ block: "nearest" });
      isNew = !id;
      id ??= (await post("/api/sessions", { notebook }, signal)).session_id;
      // The address says which conversation this is, so that one can come back to its answer.
      const here = home();
      const isOther = location.pathname.startsWith("/sessions/") && location.pathname !== here;
      if (location.pathname + location.search !== here) history[isOther ? "pushState" : "replaceState"](null, "", here);
      let failed = null;
      let finished = null;
      const [body, method] = kind === "answer" ? [undefined, "GET"] : [{ question: asked, last, ...chosen }, "POST"];
      stop.disabled = false; // The server knows of the answer from here on.
      for await (const event of stream(`${path()}/${kind}`, body, signal, method)) {
        if (event.type === "error") failed = event.error;
        else if (event.type === "turn") finished = event.turn;
        else if (event.type.startsWith("dialog")) questions.take(event);
        else live.show(event);
      }
      if (kind === "answer" && !failed) {
        // The answer may have replaced another one, or have ended before it was asked for.
        const newest = (await shown.showNewest()).turns.at(-1);
        if (newest) tell(newest);
        scrollToTurn(turns.lastElementChild);
        settle();
        return;
      }
      if (!finished) throw failed ?? { message: "The connection to ragchat was lost.", hint: "Is `ragchat web` still running?" };
      replaced?.remove();
      const element = turnElement(finished, view);
      live.finish(element);
      scrollToTurn(element, "nearest");
      tell(finished);
      settle();
    } catch (error) {
      for (const hidden of turns.querySelectorAll(".turn[hidden]")) hidden.hidden = false;
      if (signal.aborted) return;
      // The server, which was started again, knows no conversation without an answer.
      if (error.code === "SESSION_NOT_FOUND" && !isStored && !isNew) {
        isForgotten = true;
        live.element.remove();
        return;
      }
      const typed = kind === "research" && mode.value !== kind ? `/research ${asked}` : asked.replace(/^\//, "//");
      question.value ||= typed;
      if (!isStored) history.replaceState(null, "", placeOf(notebook));
      if (error.code === "SESSION_CHANGED") {
        failure = error;
        navigate(location.pathname, { replace: true });
      } else if (error.code === "STOPPED") {
        live.fail(h("p", { class: "dim" }, error.message));
        say(error.message);
      } else live.fail(errorBox(error));
    } finally {
      questions.close();
      problems.replaceChildren(); // One need not wait any more.
      if (document.activeElement === stop) question.focus({ preventScroll: true });
      [running, button.disabled, stop.hidden] = [false, false, true];
      if (isForgotten) {
        id = null;
        run(kind, asked);
      }
    }
  }

  // The list and the title say which conversation this is, once it is stored. The next question need not wait for them.
  async function settle() {
    isStored = true;
    const listed = (await list.refresh()).find((one) => one.session_id === id);
    if (listed) showHead(listed.title);
  }

  // Ask the last question again. The button goes with its answer, so that the focus is where one goes on.
  function retry() {
    question.focus({ preventScroll: true });
    return run("retry", "");
  }

  // Ask an earlier question in other words: in a copy of the conversation, up to that question.
  async function edit(article, turn, asked) {
    if (running) throw { message: "Wait for the answer, or stop it." };
    const fork = await post(`${path()}/fork`, { before: turn.turn_id });
    id = fork.session_id;
    isStored = fork.turns > 0;
    if (isStored) await shown.showNewest();
    else turns.replaceChildren();
    question.focus();
    await run("ask", asked);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const asked = question.value.trim();
    if (!asked) return;
    if (/^\/[\w-]*(\s|$)/.test(asked)) return guarded(commands.run)(asked);
    if (running) return wait();
    question.value = "";
    run(mode.value, asked.replace(/^\/\//, "/")); // Two slashes begin a question that begins with one.
  });
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });

  // The conversation as a whole

  const head = h("div", { class: "head" });
  function showHead(title) {
    const button = (text, action) => h("button", { type: "button", onclick: guarded(action) }, text);
    const file = (kind, text) => h("a", { href: `${path()}/export?as=${kind}`, download: true }, text);
    document.title = title ? `${title} – ragchat` : "ragchat";
    head.replaceChildren(h("h1", {}, title || "New conversation"), isStored && h("div", { class: "actions", role: "group", "aria-label": "This conversation" },
      button("Rename", async () => {
        const name = await askForText("Rename the conversation", "Name", title);
        if (!name) return;
        await post(`${path()}/title`, { title: name });
        showHead(name);
        head.querySelector("button").focus(); // the one that took the place of the pressed one
        list.refresh();
      }),
      button("Fork", async () => navigate(`/sessions/${(await post(`${path()}/fork`)).session_id}`)),
      button("Delete", async () => {
        if (!await confirm("Delete the conversation?", `“${title}” and its answers are deleted for good.`, "Delete")) return;
        await remove(path());
        navigate(placeOf(notebook));
      }),
      file("markdown", "Save as Markdown"), file("html", "Save as HTML")) || "");
  }

  // Where this conversation is: the notebook's documents, model and instructions.
  const about = h("div", { class: "about" });
  async function showNotebook() {
    if (place !== notebook) [place, chosen.scope, chosen.model] = [notebook, "", ""];
    showScope();
    const known = await get("/api/notebooks", signal);
    list.showPlaces(known);
    if (!notebook) return null;
    const found = known.notebooks.find((one) => one.name === notebook);
    if (!found) throw { message: `There is no notebook ${notebook}.`, hint: "`ragchat notebook new` creates one." };
    scope.placeholder = found.scope || "all documents";
    about.replaceChildren(h("p", { class: "dim" }, `Notebook ${notebook}: ${found.scope || "all documents"}`),
      found.instructions && h("details", {}, h("summary", {}, "Instructions"), h("p", { class: "instructions" }, found.instructions)) || "");
    return found;
  }

  const list = sessionPanel(() => id, () => notebook, signal);
  const panel = sourcePanel(question, signal);
  main.append(h("div", { class: "chat" }, list.element, h("section", { class: "talk", "aria-label": "Conversation" }, head, about, shown.earlier, turns, shown.later, form), panel.element));

  const home = () => id && (isStored || running) ? `/sessions/${id}` : placeOf(notebook);
  // A question that was typed and not asked, of this tab.
  const keep = () => sessionStorage.setItem(home(), question.value);
  question.value = sessionStorage.getItem(home()) ?? "";
  sessionStorage.removeItem(home());
  signal.addEventListener("abort", keep);
  window.addEventListener("pagehide", keep, { signal });
  showHead("");
  if (id) {
    const asked = query.get("turn");
    opening = asked ? shown.showFrom(asked) : shown.showNewest();
    const page = await opening;
    notebook = page.notebook;
    isStored = page.turns.length > 0;
    showHead(page.title);
    if (page.asked && !asked) run("answer", page.asked);
    else scrollToTurn(turns[asked ? "firstElementChild" : "lastElementChild"]);
  }
  question.focus({ preventScroll: true });
  list.refresh();
  const found = guarded(showNotebook)();
  listed = listModels(found);
  await found;
  if (failure) problems.replaceChildren(errorBox(failure));
  failure = null;
}

// The source of a citation, beside the answer; where there is no room, instead of it.
function sourcePanel(question, signal) {
  const body = h("div", {});
  const back = h("button", { type: "button", onclick: close }, "Back");
  const element = h("aside", { class: "source", hidden: true, "aria-label": "Source" }, back, body);
  let opener = null;

  // Where it covers the page, keyboard and screen reader stay in it.
  const beside = matchMedia("(min-width: 60rem)");
  function show(isOpen) {
    element.hidden = !isOpen;
    for (const other of document.querySelectorAll(".skip, header, .chat > :not(.source)")) other.inert = isOpen && !beside.matches;
  }
  beside.addEventListener("change", () => show(!element.hidden), { signal });
  signal.addEventListener("abort", () => show(false));

  function close() {
    const back = opener?.isConnected ? opener : question;
    keeping(back, () => show(false));
    back.focus();
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !element.hidden && !document.querySelector("dialog[open]")) close();
  }, { signal });

  async function open(source, chip) {
    opener = chip;
    keeping(chip, () => show(true));
    body.replaceChildren();
    back.focus();
    try {
      await openSource(body, {
        documentId: source.document_id, uri: source.uri, title: source.title, location: source.location,
        startLine: source.start_line, endLine: source.end_line, quote: source.quote ?? "", chunkId: source.chunk_id,
        quoteStartLine: source.quote_start_line ?? null, quoteEndLine: source.quote_end_line ?? null,
      });
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(errorBox(error));
    }
  }
  return { element, open };
}
