// The graph of datasets: buttons on a plane that is moved and zoomed; edges are one drawing beneath.

import { h, s } from "./dom";
import { ago, compact, counted, duration, kind, percent } from "./format";
import { type Placed, HEIGHT, place, WIDTH } from "./layout";
import { grade, mark, tone, word } from "./states";
import type { Dataset } from "./types";

export interface Graph {
  element: HTMLElement;
  /** Shows new numbers; false if datasets or edges are others, so that a new graph is needed. */
  update(datasets: Dataset[]): boolean;
  /** Dims what does not match. */
  filter(matches: (dataset: Dataset) => boolean): void;
}

const LEGIBLE = 0.78;

const shape = (datasets: Dataset[]): string => JSON.stringify(datasets.map((d) => [d.name, d.layer, d.in]));

export function said(d: Dataset): string {
  const facts = [d.short, kind(d.kind), word(d.state)];
  if (d.rows !== null) facts.push(counted(d.rows, "row"));
  if (d.rules) facts.push(`${percent(d.rate)} passed`);
  if (d.dropped) facts.push(`${compact(d.dropped)} dropped`);
  facts.push(`last rows ${ago(d.rows_at)}`);
  return facts.join(", ");
}

function content(d: Dataset): HTMLElement[] {
  const rows = d.rows === null ? (d.wrote ? `+${compact(d.wrote)}` : kind(d.kind)) : `${compact(d.rows)} rows`;
  const lost = d.dropped ? `${compact(d.dropped)} dropped` : d.held ? `${compact(d.held)} held` : "";
  return [
    h("span.line.head", {}, h("span.name", {}, d.short), mark(d.state)),
    h("span.line", {}, h("span", {}, rows), d.rules ? h(`span.rate.${grade(d.rate)}`, {}, percent(d.rate)) : ""),
    h("span.line.quiet", {}, h("span", {}, d.rows_at ? ago(d.rows_at) : ""), h("span", { class: lost ? "lost" : "" }, lost || duration(d.seconds))),
  ];
}

export function draw(datasets: Dataset[], open: (name: string) => void): Graph {
  let current = datasets;
  const placed = place(datasets), known = shape(datasets);
  const nodes = datasets.map((d, i) => node(d, i, placed, open));
  const plane = h("div.plane", {}, edges(placed), ...nodes);
  const view = h("div.canvas", { role: "group", "aria-label": "Graph of the datasets, from what is read to what reads it" }, plane);
  const zoomed = camera(view, plane, placed);
  const tall = placed.height < 560 ? Math.max(260, placed.height + 24) : Math.min(900, Math.max(560, placed.height * LEGIBLE + 8));
  const element = h("div.graph", { "--tall": `${tall}px` }, view, zoomed.controls);
  const lit = plane.querySelector("g.lit") as SVGElement;
  view.classList.toggle("many", datasets.length > 150);
  const above: number[][] = datasets.map((d) => d.in), below: number[][] = datasets.map(() => []);
  datasets.forEach((d, i) => d.in.forEach((j) => below[j].push(i)));

  function trace(i: number | null): void {
    view.classList.toggle("traced", i !== null);
    const chain = i === null ? new Set<number>() : new Set([...closure(i, above), ...closure(i, below)]);
    nodes.forEach((n, k) => n.classList.toggle("on", chain.has(k)));
    lit.replaceChildren(...placed.edges.filter((e) => chain.has(e.from) && chain.has(e.to)).map((e) => s("path.edge", { d: e.path })));
  }
  nodes.forEach((n, i) => {
    n.addEventListener("pointerenter", () => trace(i));
    n.addEventListener("pointerleave", () => trace(null));
    n.addEventListener("focus", () => { trace(i); if (n.matches(":focus-visible")) zoomed.reveal(placed.places[i]); });
    n.addEventListener("blur", () => trace(null));
    n.addEventListener("keydown", (event) => step(event as KeyboardEvent, i));
  });

  function step(event: KeyboardEvent, i: number): void {
    const here = placed.places[i];
    const ways: Record<string, number[]> = { ArrowRight: below[i], ArrowLeft: above[i] };
    let target: number | undefined = ways[event.key]?.[0];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const way = event.key === "ArrowDown" ? 1 : -1;
      const column = placed.places.map((p, k) => ({ k, d: (p.y - here.y) * way, x: Math.abs(p.x - here.x) })).filter((c) => c.x < 5 && c.d > 1);
      target = column.sort((a, b) => a.d - b.d)[0]?.k;
    }
    if (target !== undefined) { event.preventDefault(); nodes[target].focus(); }
  }

  return {
    element,
    update(next) {
      if (shape(next) !== known) return false;
      next.forEach((d, i) => {
        if (JSON.stringify(d) === JSON.stringify(current[i])) return;
        nodes[i].replaceChildren(...content(d));
        dress(nodes[i], d);
      });
      current = next;
      return true;
    },
    filter(matches) { nodes.forEach((n, i) => n.classList.toggle("dim", !matches(current[i]))); },
  };
}

function dress(element: HTMLElement, d: Dataset): void {
  element.className = `node ${tone(d.state)} ${d.kind === "" ? "outside" : d.kind.toLowerCase()}`;
  element.setAttribute("aria-label", said(d));
}

function node(d: Dataset, i: number, placed: Placed, open: (name: string) => void): HTMLElement {
  const at = placed.places[i];
  const size = { "--x": `${at.x}px`, "--y": `${at.y}px`, "--w": `${WIDTH}px`, "--h": `${HEIGHT}px` };
  const element = h("button", { type: "button", title: d.name, "data-key": `node-${d.name}`, ...size, onclick: () => open(d.name) }, content(d));
  dress(element, d);
  return element;
}

function edges(placed: Placed): SVGElement {
  const bands = placed.bands.flatMap((b) => [
    s("rect.band", { x: b.left, y: 0, width: b.right - b.left, height: placed.height, rx: 10 }),
    s("text.band", { x: b.left + 28, y: 26 }, b.name),
  ]);
  const paths = placed.edges.map((e) => s("path.edge", { d: e.path }));
  return s("svg.edges", { width: placed.width, height: placed.height, "aria-hidden": "true" }, ...bands, s("g.all", {}, ...paths), s("g.lit"));
}

function closure(start: number, next: number[][]): Set<number> {
  const found = new Set<number>(), waiting = [start];
  while (waiting.length) {
    const i = waiting.pop() as number;
    if (!found.has(i)) { found.add(i); waiting.push(...next[i]); }
  }
  return found;
}

/** Moving by dragging, zooming by wheel, pinch and buttons. */
function camera(view: HTMLElement, plane: HTMLElement, placed: Placed) {
  let x = 0, y = 0, scale = 1, touched = false, resting = 0;
  const touches = new Map<number, { x: number; y: number }>();
  const apply = () => {
    plane.style.setProperty("transform", `translate(${x}px, ${y}px) scale(${scale})`);
    plane.classList.toggle("far", scale < 0.5);
    // A layer of its own moves fast and is drawn again, sharp, when it rests.
    plane.classList.add("fast");
    clearTimeout(resting);
    resting = window.setTimeout(() => plane.classList.remove("fast"), 250);
  };
  const limit = (value: number) => Math.min(2, Math.max(0.08, value));
  function zoom(factor: number, cx = view.clientWidth / 2, cy = view.clientHeight / 2): void {
    const next = limit(scale * factor);
    x = cx - ((cx - x) * next) / scale; y = cy - ((cy - y) * next) / scale; scale = next; touched = true;
    apply();
  }
  function fit(): void {
    const [w, tall] = [view.clientWidth, view.clientHeight];
    if (!w || !tall) return;
    scale = Math.min(1, Math.max(0.08, Math.min(w / placed.width, tall / placed.height)));
    if (scale < LEGIBLE && !touched) scale = LEGIBLE; // the whole is one button away
    x = Math.max(0, (w - placed.width * scale) / 2); y = Math.max(0, (tall - placed.height * scale) / 2);
    apply();
  }
  function reveal(at: { x: number; y: number }): void {
    if (scale < 0.5) scale = 0.8;
    const [left, top] = [at.x * scale + x, at.y * scale + y], [w, tall] = [view.clientWidth, view.clientHeight];
    if (left < 20 || left + WIDTH * scale > w - 20) x = w / 2 - (at.x + WIDTH / 2) * scale;
    if (top < 20 || top + HEIGHT * scale > tall - 20) y = tall / 2 - (at.y + HEIGHT / 2) * scale;
    view.scrollTo(0, 0);
    apply();
  }
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey && !view.matches(":focus-within, .active")) return; // the page scrolls
    event.preventDefault();
    const box = view.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  view.addEventListener("pointerdown", (event) => { touches.set(event.pointerId, { x: event.clientX, y: event.clientY }); view.classList.add("active"); });
  document.addEventListener("pointerdown", (event) => { if (!view.contains(event.target as Node)) view.classList.remove("active"); });
  view.addEventListener("pointermove", (event) => {
    const before = touches.get(event.pointerId);
    if (!before) return;
    const others = [...touches].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
    const box = view.getBoundingClientRect();
    if (others.length) {
      const [was, now] = [before, { x: event.clientX, y: event.clientY }].map((p) => Math.hypot(p.x - others[0].x, p.y - others[0].y));
      zoom(now / (was || 1), (event.clientX + others[0].x) / 2 - box.left, (event.clientY + others[0].y) / 2 - box.top);
    } else {
      if (Math.hypot(event.clientX - before.x, event.clientY - before.y) < 4 && !view.classList.contains("moving")) return;
      if (!view.classList.contains("moving")) { view.classList.add("moving"); view.setPointerCapture(event.pointerId); }
      x += event.clientX - before.x; y += event.clientY - before.y; touched = true;
      apply();
    }
    touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  const release = (event: PointerEvent) => { touches.delete(event.pointerId); setTimeout(() => view.classList.remove("moving")); };
  view.addEventListener("pointerup", release);
  view.addEventListener("pointercancel", release);
  view.addEventListener("click", (event) => { if (view.classList.contains("moving")) { event.stopPropagation(); event.preventDefault(); } }, true);
  new ResizeObserver(() => { if (!touched) fit(); }).observe(view);
  const button = (label: string, text: string, action: () => void) => h("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
  const controls = h("div.zoom", {}, button("Zoom in", "+", () => zoom(1.3)), button("Zoom out", "−", () => zoom(1 / 1.3)),
    button("Show the whole graph", "⤢", () => { touched = true; fit(); }));
  return { controls, reveal };
}
