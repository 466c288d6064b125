// The map of the memory: documents as points on a canvas; the list below it has the same for all who cannot see
// or point at it.

import { address, get } from "../api.js";
import { counted, h, number, say } from "../dom.js";

const NEAR = 12; // pixels within which a click means a point
const ZOOM = 1.5;
const MAX_SCALE = 64;

export async function show(main, { signal, navigate }) {
  main.append(h("h1", {}, "Map"), h("p", {}, "Reading the memory…"));
  say("Reading the memory.");
  const { points, clusters, documents } = await get("/api/map", signal);
  main.lastChild.remove();
  if (!points.length) {
    main.append(h("p", {}, "There are no documents yet. ", h("a", { href: "/library" }, "Load some.")));
    return;
  }
  const part = documents > points.length ? `${number(points.length)} of ` : "";
  const facts = `${part}${counted(documents, "document")} in ${counted(clusters.length, "group")}. Documents about the same are near each other.`;
  const canvas = h("canvas", { role: "img", "aria-label": `Map of ${facts} The list below has the same.` });
  const tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const view = { scale: 1, x: 0, y: 0 }; // what is in the middle, and how much it is enlarged
  const button = (text, label, act) => h("button", { type: "button", "aria-label": label, onclick: () => (act(), draw()) }, text);
  main.append(
    h("p", {}, facts),
    h("div", { class: "map" }, canvas, tip,
      h("div", { class: "zoom" },
        button("+", "Enlarge", () => enlarge(ZOOM)),
        button("−", "Reduce", () => enlarge(1 / ZOOM)),
        button("⟲", "Show all", () => Object.assign(view, { scale: 1, x: 0, y: 0 })))),
    h("h2", {}, "Groups"),
    ...clusters.map((cluster, number) => group(cluster, points.filter((point) => point.cluster === number))));
  say(facts);

  const dark = matchMedia("(prefers-color-scheme: dark)");
  let labels = [];

  function draw() {
    const ratio = devicePixelRatio;
    const { clientWidth: width, clientHeight: height } = canvas;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const radius = Math.min(6, Math.max(2, 60 / Math.sqrt(points.length))) * Math.sqrt(view.scale) ** 0.5;
    for (const point of points) {
      const [x, y] = place(point);
      if (x < 0 || y < 0 || x > width || y > height) continue;
      context.fillStyle = colour(point.cluster, dark.matches);
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fill();
    }
    labels = [];
    const style = getComputedStyle(canvas);
    context.font = `600 14px ${style.fontFamily}`;
    context.textBaseline = "middle";
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.strokeStyle = style.backgroundColor;
    context.fillStyle = style.color;
    clusters.forEach((cluster, number) => { // the largest first: a label that does not fit is left out
      const text = cluster.words.slice(0, 2).join(" · ");
      const half = context.measureText(text).width / 2 + 4;
      const [x, y] = place(cluster);
      const at = Math.min(width - half, Math.max(half, x));
      const box = { left: at - half, right: at + half, top: y - 11, bottom: y + 11, number };
      const overlaps = labels.some((other) => box.left < other.right && box.right > other.left && box.top < other.bottom && box.bottom > other.top);
      if (!text || overlaps || x < 0 || x > width || y < 11 || y > height - 11) return;
      labels.push(box);
      context.strokeText(text, box.left + 4, y);
      context.fillText(text, box.left + 4, y);
    });
  }

  function place({ x, y }) {
    const { clientWidth: width, clientHeight: height } = canvas;
    const margin = 32;
    return [width / 2 + (x - view.x) * view.scale * (width / 2 - margin), height / 2 + (y - view.y) * view.scale * (height / 2 - margin)];
  }

  // Keep what is at (x, y) of the canvas, by default its middle, where it is.
  function enlarge(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const scale = Math.min(MAX_SCALE, Math.max(1, view.scale * factor));
    const kept = 1 / view.scale - 1 / scale;
    move((x - canvas.clientWidth / 2) * kept, (y - canvas.clientHeight / 2) * kept);
    view.scale = scale;
  }

  function move(x, y) {
    view.x = Math.min(1, Math.max(-1, view.x + x / (canvas.clientWidth / 2)));
    view.y = Math.min(1, Math.max(-1, view.y + y / (canvas.clientHeight / 2)));
  }

  // The address of the label or the document at a place, and what to show there.
  function at({ offsetX, offsetY }) {
    const label = labels.find((box) => offsetX > box.left && offsetX < box.right && offsetY > box.top && offsetY < box.bottom);
    if (label) return { href: search(clusters[label.number]), text: clusters[label.number].words.join(" · ") };
    let best = null, least = NEAR;
    for (const point of points) {
      const [x, y] = place(point);
      const distance = Math.hypot(x - offsetX, y - offsetY);
      if (distance < least) [best, least] = [point, distance];
    }
    return best && { href: read(best), text: best.title };
  }

  let dragged = 0;
  canvas.addEventListener("pointerdown", (event) => {
    dragged = 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons) {
      dragged += Math.abs(event.movementX) + Math.abs(event.movementY);
      if (dragged < 4) return;
      move(-event.movementX / view.scale, -event.movementY / view.scale);
      tip.hidden = true;
      return draw();
    }
    const found = at(event);
    canvas.style.cursor = found ? "pointer" : "grab";
    tip.hidden = !found;
    if (!found) return;
    tip.textContent = found.text;
    tip.style.left = `${Math.min(event.offsetX + 12, canvas.clientWidth - tip.offsetWidth)}px`;
    tip.style.top = `${event.offsetY + 16}px`;
  });
  canvas.addEventListener("pointerleave", () => (tip.hidden = true));
  canvas.addEventListener("click", (event) => {
    const found = dragged < 4 && at(event);
    if (found) navigate(found.href);
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    enlarge(event.deltaY < 0 ? ZOOM : 1 / ZOOM, event.offsetX, event.offsetY);
    draw();
  }, { passive: false });
  dark.addEventListener("change", draw, { signal });
  const resized = new ResizeObserver(draw);
  resized.observe(canvas);
  signal.addEventListener("abort", () => resized.disconnect());
}

function group(cluster, points) {
  const list = h("ul");
  const fill = () => list.childNodes.length || list.append(...points.map((point) => h("li", {}, h("a", { href: read(point) }, point.title))));
  return h("details", { ontoggle: fill },
    h("summary", {}, `${cluster.words.join(" · ")} (${number(points.length)})`),
    h("p", {}, h("a", { href: search(cluster) }, `Search for ${cluster.words.join(" ")}`)),
    list);
}

const search = (cluster) => address("/search", { q: cluster.words.join(" ") });
const read = (point) => address("/document", { id: point.document_id });

// As many colours as clusters, all as light as each other: readable on both backgrounds.
const colour = (number, isDark) => `oklch(${isDark ? "78% 0.13" : "54% 0.15"} ${(number * 137.5) % 360})`;
