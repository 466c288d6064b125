// The conversation: questions, answers that stream in, their citations.

import { get, post, stream } from "../api.js";
import { build, errorBox, h, say } from "../dom.js";

export async function show(main, { params, signal, navigate }) {
  const session = params.id ? await get(`/api/sessions/${params.id}`, signal) : await post("/api/sessions", {}, signal);
  const turns = h("div", { class: "turns" }, session.turns.map((turn) => turnElement(turn)));
  const question = h("textarea", { name: "question", rows: "2", "aria-label": "Question", required: true });
  const button = h("button", {}, "Ask");
  const form = h("form", { class: "ask" }, question, button);
  main.append(turns, form);
  question.focus();

  let running = null;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) return running.abort();
    const asked = question.value.trim();
    if (!asked) return;
    running = new AbortController();
    signal.addEventListener("abort", () => running?.abort());
    button.textContent = "Stop";
    question.value = "";
    const answer = h("div", { class: "answer" });
    const turn = h("article", { class: "turn" }, h("h2", {}, asked), answer);
    turns.append(turn);
    try {
      for await (const event of stream(`/api/sessions/${session.session_id}/ask`, { question: asked }, running.signal)) {
        if (event.type === "blocks") {
          while (answer.childNodes.length > event.from) answer.lastChild.remove();
          answer.append(...build(event.nodes, cite));
        } else if (event.type === "turn") {
          turn.replaceWith(turnElement(event.turn));
          if (!params.id) history.replaceState(null, "", `/sessions/${session.session_id}`);
        } else if (event.type === "error") answer.append(errorBox(event.error));
      }
    } catch (error) {
      answer.append(error.name === "AbortError" ? h("p", {}, "Stopped.") : errorBox(error));
    } finally {
      running = null;
      button.textContent = "Ask";
    }
  });
}

const cite = (n) => h("button", { type: "button", class: "chip" }, `${n}`);

function turnElement(turn) {
  return h("article", { class: "turn" },
    h("h2", {}, turn.question),
    h("div", { class: "answer" }, ...build(turn.nodes, cite)));
}
