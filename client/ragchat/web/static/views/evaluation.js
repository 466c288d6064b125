// The answers that the user has judged: a chart of the runs, what changed from one to the next, and the cases.

import { get, remove, stream } from "../api.js";
import { confirm } from "../dialogs.js";
import { errorBox, h, say } from "../dom.js";

const NAMES = { true: "yes", false: "no", null: "–" };

export async function show(main, { signal }) {
  const problem = h("div", {});
  const progress = h("p", { class: "dim" });
  const content = h("div", {});
  const again = h("button", { type: "button", onclick: askAll }, "Ask all again");
  main.append(h("h1", {}, "Evaluation"),
    h("p", {}, "“Good” and “Bad” below an answer save its question here. Ask them again after a change of documents, settings or models."),
    h("div", { class: "actions" }, again), progress, problem, content);
  draw(await get("/api/evaluation", signal));

  function draw({ cases, runs }) {
    again.disabled = !cases.length;
    content.replaceChildren(
      ...(runs.length ? [h("h2", {}, "Runs"), chart(runs), changes(runs[0])] : []),
      h("h2", {}, "Cases"),
      cases.length ? table(cases) : h("p", {}, "There are no cases yet."));
  }

  async function askAll() {
    problem.replaceChildren();
    again.disabled = true;
    try {
      for await (const event of stream("/api/evaluation/runs", {}, signal)) {
        if (event.type === "error") throw event.error;
        if (event.type === "progress") progress.textContent = `${event.done} of ${event.total}`;
        if (event.type === "done") {
          draw(event);
          say(`${event.runs[0].right} of ${event.runs[0].known} are right.`);
        }
      }
    } catch (error) {
      if (error.name !== "AbortError") problem.replaceChildren(errorBox(error));
    } finally {
      again.disabled = false;
      progress.textContent = "";
    }
  }

  function table(cases) {
    const head = ["Question", "Verdict", "Right place", "Right", "First screen", "In the prompt", ""];
    return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Cases" }, h("table", {},
      h("thead", {}, h("tr", {}, head.map((name) => name ? h("th", { scope: "col" }, name) : h("td", {})))),
      h("tbody", {}, cases.map((one) => h("tr", {},
        h("td", {}, one.question, one.outcome?.failures.map((text) => h("div", { class: "dim" }, text))),
        h("td", {}, one.verdict), h("td", {}, one.wanted || "not known"),
        ["right", "screen", "prompt"].map((name) => h("td", {}, one.outcome ? NAMES[one.outcome[name]] : "–")),
        h("td", {}, h("button", { type: "button", "aria-label": `Remove ${one.question}`, onclick: () => forget(one) }, "Remove")))))));
  }

  async function forget(one) {
    if (!await confirm("Remove the case?", `“${one.question}” is not asked again.`, "Remove")) return;
    try {
      draw(await remove(`/api/evaluation/cases/${one.case_id}`));
    } catch (error) {
      problem.replaceChildren(errorBox(error));
    }
  }
}

// One bar a run, newest first: the share of right answers, and below it that of the first screen.
function chart(runs) {
  return h("div", { class: "why" }, h("figure", {},
    h("figcaption", {}, "Right answers; below them, right places on the first screen"),
    h("ol", {}, runs.map((run) => h("li", {},
      h("span", { class: "name" }, run.at),
      bar(run.right / run.known, "used"), bar(run.screen / run.places, "used thin"),
      h("span", { class: "dim" }, [`${run.right} of ${run.known} right`, `${run.screen} of ${run.places} on the screen`, run.model, ...run.differs].join(" · ")))))));
}

// The width is set by the script: the content security policy forbids it in markup.
function bar(share, kind) {
  const filled = h("span", { class: kind });
  filled.style.width = `${Math.round(100 * share) || 0}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, filled);
}

const changes = (run) => h("details", { open: true, hidden: !run.changes.length }, h("summary", {}, "Better and worse"),
  h("ul", {}, run.changes.map((text) => h("li", {}, text))));
