// Set-up: blocks for other programs, the other servers, the doctor, the settings, signing out.

import { get, post, stream } from "../api.js";
import { counted, errorBox, h, say } from "../dom.js";

export async function show(main, { signal }) {
  const setup = await get("/api/setup", signal);
  const section = (title, ...children) => h("section", {}, h("h2", {}, title), ...children);
  const servers = h("div", { "aria-live": "polite" });
  main.append(
    h("h1", {}, "Set-up"),
    section("Use this memory in other programs", programs(setup.programs)),
    section("Other servers", servers, h("p", {}, "To add one, run in a terminal: ", h("code", {}, "ragchat mcp add NAME -- COMMAND"),
      " or ", h("code", {}, "ragchat mcp add NAME URL"), ".")),
    section("Check everything", doctor(signal)),
    section("Settings", settings(setup)),
    section("Files", h("div", { class: "wide", tabindex: "0" }, table(["what", "path"],
      Object.entries(setup.files).map(([name, { path, exists }]) => [name.replace("_", " "), exists ? path : `${path} (does not exist)`])))),
    section("This browser", h("button", { type: "button", onclick: signOut }, "Sign out")));
  await listServers(servers, signal);
}

async function signOut() {
  await fetch("/sign-out", { method: "POST" });
  location.assign("/sign-in");
}

function programs(all) {
  const where = h("p"), block = h("pre", { tabindex: "0" });
  const choose = h("select", { onchange: () => fill() }, all.map((one) => h("option", { value: one.name }, one.title)));
  const copy = h("button", { type: "button", onclick: async () => {
    await navigator.clipboard.writeText(block.textContent);
    say("Copied.");
  } }, "Copy");
  function fill() {
    const chosen = all.find((one) => one.name === choose.value);
    where.textContent = `Paste this into ${chosen.where} and restart the program.`
      + (chosen.needs_password ? " Replace *** by the user and the password of the database." : "");
    block.textContent = chosen.text;
  }
  fill();
  return h("div", {}, h("label", {}, "Program ", choose), " ", navigator.clipboard && copy, where, block);
}

async function listServers(place, signal) {
  try {
    const { servers } = await get("/api/servers", signal);
    if (signal.aborted) return;
    if (!servers.length) place.replaceChildren(h("p", {}, "There are none."));
    else place.replaceChildren(...servers.map((one) => serverElement(one)));
    if (servers.some((one) => one.state === "starting")) setTimeout(() => signal.aborted || listServers(place, signal), 1000);
  } catch (error) {
    if (error.name !== "AbortError") place.replaceChildren(errorBox(error));
  }
}

function serverElement(server) {
  const act = (text, action, tool = "") => h("button", { type: "button", "aria-label": `${text}: ${tool || server.label}`, onclick: async (event) => {
    for (const button of element.querySelectorAll("button")) button.disabled = true;
    event.target.textContent = "…";
    try {
      const changed = await post("/api/servers", { server: server.name, action, tool });
      const replacement = serverElement(changed);
      element.replaceWith(replacement);
      replacement.querySelector("button")?.focus();
      say(`${changed.label}: ${changed.state}.`);
    } catch (error) {
      element.replaceWith(errorBox(error), serverElement(server));
    }
  } }, text);
  const isUnasked = server.state === "waits for your consent";
  const isDisabled = server.state === "disabled";
  const rules = [...server.tools, ...server.other_rules].filter((tool) => tool.rule);
  const element = h("article", { class: "server" },
    h("h3", {}, server.label, " ", h("span", { class: `state ${server.state.split(" ")[0]}` }, server.state)),
    isUnasked && h("p", {}, `${server.file} would start:`),
    h("pre", { tabindex: "0" }, server.command),
    server.error && h("p", { class: "error" }, server.error),
    server.state === "wants you to log in" && h("p", {}, "Run in a terminal: ", h("code", {}, `ragchat mcp login ${server.label}`)),
    server.log && h("details", {}, h("summary", {}, "Its log"), h("pre", { tabindex: "0" }, server.log)),
    h("p", { class: "actions" },
      isDisabled ? act("Enable", "enable") : [act(isUnasked ? "Allow and start" : "Test", "start"), " ", act("Disable", "disable")],
      " ", rules.length > 0 && act("Forget what I allowed and forbade", "forget")),
    server.tools.length > 0 && h("details", {},
      h("summary", {}, counted(server.tools.length, "tool")),
      h("ul", {}, server.tools.map((tool) => h("li", {}, h("strong", {}, tool.label), " ", tool.description.split("\n")[0])))),
    rules.length > 0 && h("ul", {}, rules.map((tool) => h("li", {},
      tool.rule === "never" ? "never allowed: " : tool.rule === "session" ? "allowed in this session: " : "always allowed: ",
      h("strong", {}, tool.label), tool.has_changed ? " (it has changed since: you are asked again) " : " ",
      act("Ask again", "ask_again", tool.name)))));
  return element;
}

function doctor(signal) {
  const checks = h("ul", { class: "checks", "aria-live": "polite" });
  const start = h("button", { type: "button", onclick: async () => {
    start.disabled = true;
    checks.replaceChildren();
    try {
      for await (const check of stream("/api/doctor", {}, signal)) {
        if (check.type === "error") throw check.error;
        checks.append(h("li", { class: check.status }, h("strong", {}, `${check.name}: ${check.status}`), ` ${check.detail}`,
          check.hint && h("div", {}, check.hint)));
      }
      checks.append(h("li", {}, "All checks are done."));
    } catch (error) {
      if (error.name !== "AbortError") checks.append(h("li", {}, errorBox(error)));
    } finally {
      start.disabled = false;
    }
  } }, "Run the doctor");
  return h("div", {}, start, checks);
}

function settings({ settings, keys }) {
  const filter = h("input", { type: "search" }), changed = h("input", { type: "checkbox", checked: true });
  const place = h("div", { class: "wide", tabindex: "0" });
  function fill() {
    const shown = settings.filter((one) => one.key.includes(filter.value.trim().toLowerCase()) && (!changed.checked || one.origin !== "default"));
    place.replaceChildren(shown.length ? table(["setting", "value", "from"], shown.map((one) => [one.key, one.value, one.origin])) : h("p", {}, changed.checked ? "None is changed from its default." : "There are none."));
  }
  filter.addEventListener("input", fill);
  changed.addEventListener("change", fill);
  fill();
  return h("div", {},
    h("p", {}, h("label", {}, "Filter ", filter), " ", h("label", {}, changed, " Changed only")),
    place,
    Object.entries(keys).map(([name, isSet]) => h("p", {}, `${name} is ${isSet ? "set" : "not set"}.`)));
}

const table = (names, rows) => h("table", {},
  h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))),
  h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell))))));
