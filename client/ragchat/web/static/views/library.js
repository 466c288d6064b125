// The library: documents by folder, the folders that memory follows, loads, versions, the journal.

import { ApiError, address, get, post, put, remove, stream } from "../api.js";
import { ask } from "../dialogs.js";
import { counted, errorBox, h, number, say } from "../dom.js";

const MOST_FILES = 5000;
const PARTS = [["", "Documents"], ["folders", "Folders"], ["changes", "Changes"]];
const size = (bytes) => bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

export async function show(main, { query, signal }) {
  const library = await get("/api/library", signal);
  const part = query.get("document") ? "document" : query.get("show") ?? "";
  const said = h("div", { class: "said", role: "status" });
  const body = h("div", { class: "library" });
  const site = {
    library, signal,
    // Say what was done, with what takes it back.
    tell(sentences, group) {
      const undo = group && library.can_undo && action("Undo", async () => {
        site.tell((await post("/api/library/undo", { group })).said);
        await site.refresh();
      }, site);
      said.replaceChildren(...sentences.map((line) => h("p", {}, line)), ...(undo ? [undo] : []));
      if (undo) undo.focus();  // The button that was used may be gone.
    },
    fail(error) {
      if (error.name !== "AbortError") said.replaceChildren(errorBox(error));
    },
    async refresh() {
      Object.assign(library, await get("/api/library", signal));
      showProblems();
      site.showIntro?.();
      await view.refresh?.();
    },
  };
  const problems = h("section", { class: "problems", "aria-label": "Problems" });
  const showProblems = () => problems.replaceChildren(...library.problems.map(
    ({ status, name, detail, hint }) => h("p", { class: status, role: "alert" },
      h("strong", {}, status === "fault" ? "Fault" : "Warning"), ` ${name}: ${detail}. ${hint}`)));
  showProblems();
  main.append(
    h("h1", {}, "Library"),
    problems,
    ...(part === "document" ? [] : [loading(site)]),
    said,
    h("nav", { class: "parts", "aria-label": "Parts of the library" }, PARTS.map(([name, title]) =>
      h("a", { href: address("/library", { show: name }), "aria-current": name === part ? "page" : null }, title))),
    body,
  );
  const views = { document: oneDocument, folders: followed, changes: journal };
  const view = library.documents === null ? {} : await (views[part] ?? documents)(body, site, query);
}

// A button that is off while it works; what fails is shown.
function action(text, work, site, attributes = {}) {
  const button = h("button", { type: "button", ...attributes, onclick: async () => {
    button.disabled = true;
    try {
      await work();
    } catch (error) {
      site.fail(error);
    } finally {
      button.disabled = false;
    }
  } }, text);
  return button;
}

// Asks before something is removed. `choices` are [text, work].
async function offer(site, title, lines, ...choices) {
  const pressed = await ask({
    title, content: lines.filter(Boolean).map((line) => h("p", {}, line)), escape: "no", signal: site.signal,
    buttons: [["no", "Cancel"], ...choices.map(([text], index) => [`${index}`, text])],
  });
  try {
    await choices[pressed]?.[1]();
  } catch (error) {
    site.fail(error);
  }
}

// Dropped files, and the jobs that load them

function loading(site) {
  const { library } = site;
  const jobs = h("ul", { class: "jobs", "aria-label": "Loads" });
  const sending = h("p", { role: "status" });
  const pick = (attributes) => h("input", { type: "file", hidden: true, tabindex: "-1", ...attributes, onchange(event) {
    const files = [...event.target.files].map((file) => [file.webkitRelativePath || file.name, file]);
    event.target.value = "";
    send(files);
  } });
  const files = pick({ multiple: true });
  const folder = pick({ webkitdirectory: true });
  let busy = null;

  async function send(files) {
    if (busy) return site.fail({ message: "Wait until the files are sent, or stop that: these are not loaded." });
    const isHidden = ([name]) => name.split("/").some((part) => part.startsWith("."));
    // Those within folders are left out everywhere, without a word.
    const failed = files.filter((one) => isHidden(one) && !one[0].includes("/"))
      .map(([name]) => `${name} is not loaded: its name begins with a dot, as those of hidden files do.`);
    files = files.filter((one) => !isHidden(one));
    if (files.length > MOST_FILES) {
      return site.fail({ message: `These are ${number(files.length)} files; at most ${number(MOST_FILES)} are sent at once.`,
                         hint: "Add the folder by its path, under Folders." });
    }
    busy = new AbortController();
    site.signal.addEventListener("abort", () => busy?.abort());
    const stop = h("button", { type: "button", onclick: () => busy.abort() }, "Stop");
    const names = [];
    try {
      for (const [index, [name, file]] of files.entries()) {
        sending.replaceChildren(`Sending ${number(index + 1)} of ${counted(files.length, "file")}: ${name} `, stop);
        if (file.size > library.upload_bytes) {
          failed.push(`${name} is larger than ${number(library.upload_bytes)} bytes.`);
          continue;
        }
        try {
          await put(address("/api/library/files", { name }), file, busy.signal);
          names.push(name);
        } catch (error) {
          if (!(error instanceof ApiError) || error.code === "UNREACHABLE") throw error;
          failed.push([error.message, error.hint].filter(Boolean).join(" "));
        }
      }
      if (names.length) await post("/api/library/files/load", { names });
    } catch (error) {
      if (error.name === "AbortError") failed.push("Stopped: nothing was loaded.");
      else failed.push(error.message);
    } finally {
      busy = null;
      sending.replaceChildren(...failed.slice(0, 20).map((line) => h("span", { class: "error" }, `${line} `)));
    }
  }

  const intro = h("div");
  site.showIntro = () => intro.replaceChildren(...(library.documents === 0
    ? [h("p", {}, h("strong", {}, "Memory is empty. Drop files or folders here: notes, PDFs, Office documents, code, mail.")),
       h("p", {}, "Or in a terminal: ", h("code", {}, "ragchat inject ~/notes"), ". To keep memory in step with a folder, ",
         h("a", { href: "/library?show=folders" }, "add it"), ".")]
    : [h("p", {}, "Drop files or folders here to load them.")]));
  site.showIntro();
  const zone = h("section", { class: "drop", "aria-label": "Load files", hidden: !library.can_write || library.documents === null },
    intro,
    h("div", { class: "actions" },
      h("button", { type: "button", onclick: () => files.click() }, "Choose files"),
      h("button", { type: "button", onclick: () => folder.click() }, "Choose a folder"),
      files, folder),
    sending, jobs);
  // Anywhere on the page, not only in the zone.
  window.addEventListener("dragover", (event) => {
    if (event.dataTransfer.types.includes("Files")) zone.classList.add("over");
  }, { signal: site.signal });
  window.addEventListener("dragleave", (event) => event.relatedTarget ?? zone.classList.remove("over"), { signal: site.signal });
  window.addEventListener("drop", async (event) => {
    zone.classList.remove("over");
    if (zone.hidden || !event.dataTransfer.types.includes("Files")) return;
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const found = [];
    try {
      for (const entry of entries) await collect(entry, found);
      await send(found);
    } catch (error) {
      site.fail({ message: `The files cannot be read: ${error.message}` });
    }
  }, { signal: site.signal });
  followJobs(jobs, site);
  return zone;
}

// The files of a dropped entry, with their paths in it.
async function collect(entry, found) {
  const isInFolder = entry.fullPath.lastIndexOf("/") > 0;
  if (found.length > MOST_FILES || (entry.name.startsWith(".") && (isInFolder || entry.isDirectory))) return;
  if (entry.isFile) {
    found.push([entry.fullPath.slice(1), await new Promise((done, failed) => entry.file(done, failed))]);
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const entries = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!entries.length) return;
    for (const inner of entries) await collect(inner, found);
  }
}

// Show the jobs as they go on. A hidden tab stops: browsers open only a few connections to one server.
async function followJobs(list, site) {
  let following = null;
  let running = new Set();
  let known = null;
  const follow = async () => {
    following?.abort();
    if (document.hidden || site.signal.aborted) return;
    const mine = following = new AbortController();
    try {
      for await (const event of stream("/api/library/jobs", undefined, mine.signal, "GET")) {
        if (event.type === "error") throw new ApiError(event.error, 0);
        const ended = event.jobs.filter((job) => job.status !== "running" && (running.has(job.id) || (known && !known.has(job.id))));
        running = new Set(event.jobs.filter((job) => job.status === "running").map((job) => job.id));
        // What had ended before the page was opened is history, and is in the journal.
        known ??= new Set(event.jobs.filter((job) => job.status !== "running").map((job) => job.id));
        list.replaceChildren(...event.jobs.filter((job) => !known.has(job.id)).map((job) => jobElement(job, site)));
        for (const job of ended) say(`${job.what}: ${job.status}. ${job.summary}`);
        if (ended.length) await site.refresh();
      }
    } catch (error) {
      if (error.name !== "AbortError") site.fail(error);
    }
  };
  document.addEventListener("visibilitychange", follow, { signal: site.signal });
  site.signal.addEventListener("abort", () => following?.abort());
  await follow();
}

function jobElement(job, site) {
  const isRunning = job.status === "running";
  const progress = `${number(job.done)} of ${counted(job.files, "file")}${job.scanning ? ` (${job.scanning})` : ""}`;
  return h("li", { class: `job ${job.status}` },
    h("span", { class: "what" }, job.what),
    isRunning
      ? [h("progress", { max: job.bytes || job.files || null, value: job.files ? (job.bytes ? job.done_bytes : job.done) : null,
                         "aria-label": `${job.what}: ${progress}` }),
         job.files ? progress : "Looking for files",
         action("Cancel", () => post(`/api/library/jobs/${job.id}/cancel`), site)]
      : [` ${job.status === "completed" ? "" : `${job.status}. `}${job.summary} `,
         job.changes && site.library.can_undo && action("Undo", async () => {
           site.tell((await post("/api/library/undo", { group: job.group })).said);
           await site.refresh();
         }, site, { "aria-label": `Undo ${job.what}` })],
    job.failures.length ? h("ul", { class: "error" }, job.failures.map((line) => h("li", {}, line))) : null);
}

// Documents

async function documents(body, site, query) {
  if (site.library.documents === 0) {
    const empty = { refresh: async () => site.library.documents && Object.assign(empty, await documents(body, site, query)) };
    return empty;
  }
  const state = { q: query.get("q") ?? "", in: query.get("in") ?? "", sort: query.get("sort") ?? "uri" };
  let cursor = "";
  let asked = 0;
  const count = h("p", { role: "status" });
  const list = h("ul", { class: "documents" });
  const more = action("Show more", () => load(true), site, { hidden: true });
  // The chosen folder may be out of sight: closed, or of an earlier visit.
  const all = action("All folders", async () => {
    for (const pressed of folders.querySelectorAll("[aria-pressed=true]")) pressed.setAttribute("aria-pressed", "false");
    name.focus(); // this button goes
    await change({ in: "" });
  }, site, { hidden: true });
  const name = h("input", { type: "search", name: "q", value: state.q, placeholder: "Name, #tag or *.md" });
  const sort = h("select", { name: "sort" }, [["uri", "name"], ["title", "title"], ["updated_at", "last change"],
    ["added_at", "added"], ["characters", "size"]].map(([value, text]) => h("option", { value, selected: value === state.sort }, text)));

  async function load(isMore = false) {
    const number_ = ++asked;
    const found = await get(address("/api/library/documents",
      { ...state, descending: state.sort === "uri" || state.sort === "title" ? "" : "1", cursor: isMore ? cursor : "" }), site.signal);
    if (number_ !== asked) return;  // An answer to what was typed before.
    cursor = found.cursor;
    more.hidden = !cursor;
    const items = found.documents.map((info) => documentElement(info, site));
    const first = items[0]?.querySelector("a");
    if (isMore) list.append(...items);
    else list.replaceChildren(...items);
    const inside = found.folder && ` in ${found.folder}`;
    count.textContent = found.total ? `${number(list.children.length)} of ${counted(found.total, "document")}${inside}` : `No document${inside} matches.`;
    all.hidden = !found.folder;
    if (isMore) first?.focus();
  }
  async function change(changes) {
    if (site.signal.aborted) return;
    Object.assign(state, changes);
    history.replaceState(null, "", address("/library", { ...state, sort: state.sort === "uri" ? "" : state.sort }));
    try {
      await load();
    } catch (error) {
      site.fail(error);
    }
  }
  let typed;
  name.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => change({ q: name.value.trim() }), 150);
  });
  sort.addEventListener("change", () => change({ sort: sort.value }));
  const folders = h("details", { class: "tree", open: matchMedia("(min-width: 50rem)").matches }, h("summary", {}, "Folders"));
  body.append(h("div", { class: "columns" }, folders, h("section", { "aria-label": "Documents" },
    h("form", { class: "actions", role: "search", onsubmit: (event) => event.preventDefault() },
      h("label", {}, "Filter ", name), h("label", {}, "Sort by ", sort)), h("div", { class: "actions" }, count, all), list, more)));
  const showTree = async () => folders.replaceChildren(folders.firstChild, await tree(site, state, change));
  await Promise.all([load(), showTree()]);
  return { refresh: () => Promise.all([load(), showTree()]) };
}

function documentElement(info, site) {
  const about = [info.kind, counted(info.chunks, "passage"), size(info.characters), `changed ${info.changed}`,
    `added ${info.added}`, info.by && `by ${info.by}`, info.machine && `on ${info.machine}`];
  return h("li", { class: "document" },
    h("div", {},
      h("a", { href: address("/document", { id: info.id }) }, info.title),
      h("span", { class: "dim" }, info.name !== info.title && ` ${info.name}`, info.is_copy && " (dropped here)"),
      h("div", { class: "dim" }, about.filter(Boolean).join(" · "), " ", info.tags.map((tag) => h("span", { class: "tag" }, tag)))),
    h("div", { class: "actions" },
      h("a", { href: address("/library", { document: info.id }), "aria-label": `Versions of ${info.title}` }, "Versions"),
      site.library.can_write && h("button", { type: "button", "aria-label": `Forget ${info.title}`, onclick: () => forget(info, site) }, "Forget")));
}

function forget(info, site) {
  offer(site, `Forget ${info.name}?`, [`Its ${counted(info.chunks, "passage")} will no longer be found.`,
    info.is_copy && "The copy of the file that was dropped here stays on the disk.",
    site.library.can_undo && "This can be undone."],
  ["Forget", async () => {
    const { said, group } = await remove(address("/api/library/documents", { id: info.id }));
    site.tell(said, group);
    await site.refresh();
  }]);
}

// The folders below a place, each of which opens when it is asked for.
async function tree(site, state, change, place = "") {
  const { folders, more } = await get(address("/api/library/folders", { in: place }), site.signal);
  const select = (uri) => (event) => {
    const isOn = state.in !== uri;
    for (const other of event.target.closest(".tree").querySelectorAll("[aria-pressed=true]")) other.setAttribute("aria-pressed", "false");
    event.target.setAttribute("aria-pressed", `${isOn}`);
    change({ in: isOn ? uri : "" });
  };
  return h("ul", {}, folders.map((folder) => {
    const inner = h("div", { hidden: true });
    const opener = h("button", { type: "button", class: "opener", "aria-expanded": "false", "aria-label": `Folders in ${folder.name}`,
      onclick: async () => {
        try {
          if (!inner.firstChild) inner.append(await tree(site, state, change, folder.uri));
        } catch (error) {
          return site.fail(error);
        }
        inner.hidden = !inner.hidden;
        opener.setAttribute("aria-expanded", `${!inner.hidden}`);
      } }, "▸");
    return h("li", {}, opener,
      h("button", { type: "button", "aria-pressed": `${state.in === folder.uri}`, onclick: select(folder.uri) }, folder.name),
      h("span", { class: "dim" }, ` ${number(folder.documents)}`), inner);
  }), !folders.length && h("li", { class: "dim" }, "No folders in it."), more && h("li", { class: "dim" }, "And more; filter by name."));
}

// Folders that memory follows

async function followed(body, site) {
  const path = h("input", { name: "path", required: true, autocomplete: "off", spellcheck: "false", placeholder: "~/notes or https://…" });
  const list = h("ul", { class: "documents" });
  const begin = async (uris) => {
    await post("/api/library/sync", { uris });
    say("The sync has begun.");
  };
  const showList = () => {
    const { sources } = site.library;
    list.replaceChildren(...sources.map((source) => h("li", {},
      h("strong", {}, source.name), source.machine ? ` on ${source.machine}` : "",
      h("div", { class: source.status === "ok" ? "dim" : "error" },
        [counted(source.documents, "document"), source.synced ? `last sync ${source.synced}` : "never synced", source.outcome].filter(Boolean).join(" · ")),
      site.library.can_write && h("div", { class: "actions" },
        !source.machine && action("Sync", () => begin([source.uri]), site, { "aria-label": `Sync ${source.name}` }),
        h("button", { type: "button", "aria-label": `Remove ${source.name}`, onclick: () => removeSource(source, site) }, "Remove")))));
    if (!sources.length) list.append(h("li", { class: "dim" }, "There are no folders yet."));
  };
  body.append(
    h("p", {}, "Memory is kept in step with these folders and web pages: a sync loads what is new or changed, and removes the documents of deleted files."),
    site.library.can_write && h("form", { class: "actions", onsubmit: async (event) => {
      event.preventDefault();
      try {
        site.tell((await post("/api/library/sources", { path: path.value })).said);
        path.value = "";
        await site.refresh();
      } catch (error) {
        site.fail(error);
      }
    } }, h("label", {}, "Folder of this machine, or web page ", path), h("button", {}, "Add"), action("Sync all", () => begin([]), site)) || "",
    list,
    h("h2", {}, "Memory"),
    h("p", {}, `${counted(site.library.documents, "document")}, ${counted(site.library.chunks, "passage")}, ${size(site.library.bytes)}: ${site.library.path}`,
      site.library.server ? ` at ${site.library.server}` : ""),
    verification(site));
  showList();
  return { refresh: showList };
}

function removeSource(source, site) {
  const done = (forget) => async () => {
    const parameters = { uri: source.uri, machine: source.machine, forget: forget ? "1" : "" };
    const { said, group } = await remove(address("/api/library/sources", parameters));
    site.tell(said, group);
    await site.refresh();
  };
  const documents = counted(source.documents, "document");
  offer(site, `Remove ${source.name} from the folders that memory follows?`, [source.documents > 0 && `Memory holds ${documents} of it.`],
    [source.documents ? "Remove, keep its documents" : "Remove", done(false)],
    ...(source.documents ? [[`Remove, forget its ${documents}`, done(true)]] : []));
}

function verification(site) {
  const result = h("div", { role: "status" });
  return h("div", {}, action("Check the memory for damage", async () => {
    for await (const event of stream("/api/library/verify", {}, site.signal)) {
      if (event.type === "progress") result.replaceChildren(h("progress", { max: event.total, value: event.done, "aria-label": "Checking" }));
      else if (event.type === "error") result.replaceChildren(errorBox(event.error));
      else {
        result.replaceChildren(...(event.ok ? [h("p", {}, "The memory is intact.")] : event.problems.map((line) => h("p", { class: "error" }, line))));
        if (event.more_problems) result.append(h("p", {}, `And ${number(event.more_problems)} more.`));
        if (!event.ok) result.append(h("p", {}, "In a terminal, ", h("code", {}, "ragchat memory verify --repair"), " repairs what can be repaired."));
      }
    }
  }, site), result);
}

// The versions of one document

async function oneDocument(body, site, query) {
  const id = query.get("document");
  const changes = h("section", { "aria-label": "Changes" });
  const list = h("ol", { class: "versions" });
  body.append(list, changes);
  async function showChanges(before, after) {
    const found = await get(address("/api/library/difference", { id, before, after }), site.signal);
    const title = found.before ? `Version ${found.before.number} → ${found.after.number}` : `Version ${found.after.number}, the first`;
    changes.replaceChildren(h("h2", { tabindex: "-1" }, title), found.lines.length ? diffTable(found.lines) : h("p", {}, "The two versions are equal."),
      found.more ? h("p", {}, `And ${counted(found.more, "line")} more: ragchat memory diff ${id}`) : "");
    changes.firstChild.focus();
  }
  async function showList() {
    const { name, versions } = await get(address("/api/library/versions", { id }), site.signal);
    const current = versions.find((one) => one.current);
    list.replaceChildren(...versions.map((one, index) => {
      const earlier = versions.slice(index + 1).find((other) => other.is_kept);
      return h("li", {}, h("strong", {}, `Version ${one.number}`),
        h("span", { class: "dim" }, ` ${one.action} ${one.at}`, one.by ? ` by ${one.by}` : "",
          one.size ? ` · ${one.size}${/\d$/.test(one.size) ? " characters" : ""}` : "", one.current ? " · current" : ""),
        h("div", { class: "actions" },
          (one.is_kept || one.action === "removed") && earlier &&
            action("Changes", () => showChanges(earlier.number, one.number), site, { "aria-label": `Changes of version ${one.number}` }),
          !one.current && one.is_kept && current?.is_kept &&
            action("Compare with current", () => showChanges(one.number, current.number), site, { "aria-label": `Compare with current: version ${one.number}` }),
          !one.current && one.is_kept && site.library.can_write && action("Restore", async () => {
            site.tell((await post("/api/library/restore", { document: id, version: one.number })).said);
            await showList();
          }, site, { "aria-label": `Restore version ${one.number}` })));
    }));
    body.querySelector("h2.name")?.remove();
    body.prepend(h("h2", { class: "name" }, current ? h("a", { href: address("/document", { id }) }, name) : `${name} (removed)`));
  }
  await showList();
  return { refresh: showList };
}

const SIGNS = { "+": ["added", "+"], "-": ["removed", "−"], " ": ["", ""], "@": ["", ""] };

function diffTable(lines) {
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Differences" }, h("table", { class: "diff" },
    h("thead", {}, h("tr", {}, ["Before", "After", "Change", "Text"].map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, lines.map(([kind, before, after, text]) => {
      const [word, sign] = SIGNS[kind];
      return h("tr", { class: word || (kind === "@" ? "hunk" : null) },
        h("td", {}, before ?? ""), h("td", {}, after ?? ""),
        h("td", {}, sign && h("span", { "aria-hidden": "true" }, sign), word && h("span", { class: "unseen" }, word)),
        h("td", { class: "text" }, text || " "));
    }))));
}

// The journal

async function journal(body, site) {
  const list = h("ol", { class: "documents" });
  let limit = 100;
  const more = action("Show more", () => { limit = Math.min(limit * 2, 1000); return load(); }, site, { hidden: true });
  body.append(h("p", {}, "The last writes to memory, newest first. What one load or one removal has written is undone together."), list, more);
  const undo = (what, words, label) => action(words, async () => {
    site.tell((await post("/api/library/undo", what)).said);
    await site.refresh();
  }, site, { "aria-label": label });
  const line = (entry) => [`${entry.action} `, h("a", { href: address("/library", { document: entry.document }) }, entry.name), entry.undone ? " (undone)" : ""];
  async function load() {
    const found = await get(address("/api/library/journal", { limit }), site.signal);
    const groups = [];
    for (const entry of found.entries) {
      const last = groups.at(-1);
      if (entry.group && last?.[0].group === entry.group) last.push(entry);
      else groups.push([entry]);
    }
    list.replaceChildren(...groups.map((entries) => {
      const [first] = entries;
      const open = entries.filter((entry) => entry.can_undo);
      const head = h("div", { class: "dim" }, `${first.at}${first.by ? ` by ${first.by}` : ""}`);
      if (entries.length === 1) {
        return h("li", {}, head, line(first), " ", open.length && site.library.can_write
          ? undo({ numbers: [first.number] }, "Undo", `Undo: ${first.action} ${first.name}`) : null);
      }
      const counts = Object.entries(Object.groupBy(entries, (entry) => entry.action)).map(([name, some]) => `${number(some.length)} ${name}`);
      return h("li", {}, head, `${counts.join(", ")} `,
        open.length && site.library.can_write ? undo({ group: first.group }, `Undo all ${number(open.length)}`, `Undo all ${number(open.length)}: ${counts.join(", ")} at ${first.at}`) : null,
        h("details", {}, h("summary", {}, "Documents"), h("ul", {}, entries.map((entry) => h("li", {}, line(entry), " ",
          entry.can_undo && site.library.can_write ? undo({ numbers: [entry.number] }, "Undo", `Undo: ${entry.action} ${entry.name}`) : null)))));
    }));
    if (!groups.length) list.append(h("li", {}, "Nothing has been stored yet."));
    more.hidden = !found.more;
  }
  await load();
  return { refresh: load };
}
