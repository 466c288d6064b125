// Elements, built without markup: a text never becomes an element.

// h("a", {href: "/", class: "x", onclick: f}, "text", child, null)
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// What the elements of an answer need besides: code scrolls, also by keyboard.
const MORE = { a: { rel: "noreferrer noopener", target: "_blank" }, pre: { tabindex: "0" } };

// The nodes of `web/markup.py` as elements. `cite(n)` makes the element of a citation.
export function build(nodes, cite) {
  return nodes.map((node) => {
    if (typeof node === "string") return document.createTextNode(node);
    const [name, attributes, ...inner] = node;
    if (name === "cite") return cite(attributes.n);
    const element = h(name, { ...attributes, ...MORE[name] }, ...build(inner, cite));
    return name === "table" ? h("div", { class: "wide", tabindex: "0" }, element) : element;
  });
}

// Say something to screen readers alone.
export function say(text) {
  document.getElementById("status").textContent = text;
}

// Who is not signed in any more does so in another tab: what is on this page would be lost.
export function errorBox({ message, hint, code }) {
  return h("p", { class: "error", role: "alert" }, [message, hint].filter(Boolean).join(" "),
    code === "NOT_SIGNED_IN" && [" ", h("a", { href: "/sign-in", target: "_blank" }, "Sign in")]);
}

export const number = (count) => count.toLocaleString("en");

// "1 document", "2,000 documents"
export const counted = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;
