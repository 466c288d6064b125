// The turns of a conversation that are in the document: the newest ones, others when they are asked for.

import { address, get } from "./api.js";
import { counted, h, say } from "./dom.js";
import { mark, turnElement, turnId } from "./turn.js";

// Turns that are in the document at once.
const MAX_SHOWN = 60;

// Turns far out of sight have guessed heights, which move the others as they become known: until nothing moves.
async function settled(article, scroll) {
  for (let before = NaN, tries = 10; article?.isConnected && tries; tries -= 1) {
    scroll();
    await new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)));
    const { top } = article.getBoundingClientRect();
    if (top === before) return;
    before = top;
  }
}

export const scrollToTurn = (article, block = "start") => settled(article, () => article.scrollIntoView({ block, behavior: "instant" }));

// Change the page without moving what the user may be reading.
export async function keeping(element, change) {
  const { top } = element.getBoundingClientRect();
  change();
  await settled(element, () => scrollBy({ top: element.getBoundingClientRect().top - top, behavior: "instant" }));
}

// `path()` is the address of the conversation, `view` what `turnElement` takes; `guarded` and `fail` show errors.
export function turnList({ path, view, signal, guarded, fail }) {
  const element = h("div", { class: "turns" });
  const earlier = h("button", { type: "button", hidden: true, onclick: guarded(showEarlier) }, "Earlier");
  const later = h("button", { type: "button", hidden: true, onclick: guarded(showLater) }, "Later");

  function made(page) {
    const articles = page.turns.map((turn) => turnElement(turn, view));
    showMarks(articles);
    return articles;
  }

  // Not awaited: an answer is shown at once, its mark when the documents are compared.
  async function showMarks(articles) {
    const ids = articles.map(turnId);
    try {
      const marks = ids.length ? await get(address(`${path()}/marks`, { turns: ids.join(",") }), signal) : {};
      for (const article of articles) if (marks[turnId(article)]) mark(article, marks[turnId(article)]);
    } catch (error) {
      if (error.name !== "AbortError") fail(error);
    }
  }

  async function showNewest() {
    const page = await get(path(), signal);
    element.replaceChildren(...made(page));
    [earlier.hidden, later.hidden] = [!page.has_more, true];
    return page;
  }

  // From one turn on.
  async function showFrom(id) {
    const page = await get(address(path(), { start: id }), signal);
    element.replaceChildren(...made(page));
    [earlier.hidden, later.hidden] = [false, !page.has_more];
    return page;
  }

  async function showEarlier() {
    const first = element.firstElementChild;
    const page = await get(address(path(), { before: turnId(first) }), signal);
    await keeping(first, () => {
      element.prepend(...made(page));
      while (element.childElementCount > MAX_SHOWN) {
        element.lastElementChild.remove();
        later.hidden = false;
      }
      earlier.hidden = !page.has_more;
    });
    say(`${counted(page.turns.length, "earlier answer")}.`);
  }

  async function showLater() {
    const last = element.lastElementChild;
    const page = await get(address(path(), { start: turnId(last) }), signal);
    await keeping(last, () => {
      element.append(...made(page).slice(1)); // the first one is shown already
      while (element.childElementCount > MAX_SHOWN) {
        element.firstElementChild.remove();
        earlier.hidden = false;
      }
      later.hidden = !page.has_more;
    });
    say(`${counted(page.turns.length - 1, "later answer")}.`);
  }

  return { element, earlier, later, showNewest, showFrom };
}
