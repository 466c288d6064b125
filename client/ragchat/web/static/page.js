// Shows the view of the address. Each view is a module in views/ with
//   show(main, {params, query, signal, navigate}): fill `main`; `signal` is aborted when the user leaves it.

import { unreachable } from "./api.js";
import { errorBox } from "./dom.js";

const VIEWS = [
  [/^\/$/, "chat"],
  [/^\/sessions\/(?<id>[0-9a-f]+)$/, "chat"],
  [/^\/notebooks\/(?<notebook>[^/]+)$/, "chat"],
  [/^\/search$/, "search"],
  [/^\/document$/, "document"],
  [/^\/library$/, "library"],
  [/^\/map$/, "map"],
  [/^\/evaluation$/, "evaluation"],
  [/^\/setup$/, "setup"],
];

const main = document.getElementById("main");
const retries = {};  // by view: some browsers never again load an address from which an import failed
let leaving = new AbortController();

async function showAddress() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const { pathname, searchParams } = new URL(location.href);
  const [match, name] = VIEWS.map(([path, name]) => [path.exec(pathname), name]).find(([match]) => match) ?? [];
  for (const link of document.querySelectorAll("header nav a")) {
    const isHere = name === "chat" ? link.pathname === "/" : link.pathname === pathname;
    if (isHere) {
      link.setAttribute("aria-current", "page");
      document.title = link.textContent;  // A view may set a better one.
    } else link.removeAttribute("aria-current");
  }
  try {
    if (!match) throw { message: "There is no such page.", hint: "" };
    const view = await import(`./views/${name}.js${retries[name] ?? ""}`).catch((error) => {
      retries[name] = `?${Date.now()}`;
      throw error instanceof TypeError ? unreachable() : error; // A SyntaxError is no lost server.
    });
    if (signal.aborted) return;
    main.replaceChildren();
    await view.show(main, { params: match.groups ?? {}, query: searchParams, signal, navigate });
  } catch (error) {
    if (error.name !== "AbortError" && !signal.aborted) main.replaceChildren(errorBox(error));
  }
}

// Go to an address of this page; `replace` keeps the back button on the address before.
export function navigate(path, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", path);
  main.focus({ preventScroll: true });
  return showAddress();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const isOurs = link && link.origin === location.origin && !link.target && !link.hasAttribute("download");
  if (!isOurs || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (link.hash === "#main") {  // Another address would show the view again.
    event.preventDefault();
    return main.focus();
  }
  if (link.pathname === location.pathname && link.search === location.search && link.hash) return;
  if (!VIEWS.some(([path]) => path.test(link.pathname))) return;
  event.preventDefault();
  navigate(link.pathname + link.search + link.hash);
});
window.addEventListener("popstate", showAddress);
// A browser shows a dropped file in place of the page. Only the library takes files.
for (const type of ["dragover", "drop"]) window.addEventListener(type, (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  if (type === "drop" && location.pathname !== "/library") navigate("/library");
});

showAddress();
