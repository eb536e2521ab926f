// The graph of datasets: buttons on a plane that is moved and zoomed; edges are one drawing beneath.

import { camera, LEGIBLE } from "./camera";
import { h, s } from "./dom";
import { ago, compact, counted, duration, kind, percent } from "./format";
import { type Placed, HEIGHT, place, WIDTH } from "./layout";
import { grade, mark, severity, tone, word } from "./states";
import type { Dataset } from "./types";

export interface Graph {
  element: HTMLElement;
  /** Shows new numbers; false if datasets or edges are others, so that a new graph is needed. */
  update(datasets: Dataset[]): boolean;
  /** Dims what does not match. */
  filter(matches: (dataset: Dataset) => boolean): void;
}

const shape = (datasets: Dataset[]): string => JSON.stringify(datasets.map((d) => [d.name, d.layer, d.in]));

export function said(d: Dataset): string {
  const facts = [d.short, kind(d.kind), word(d.state)];
  if (d.rows !== null) facts.push(counted(d.rows, "row"));
  if (d.rules) facts.push(`${percent(d.rate)} passed`);
  if (d.dropped) facts.push(`${compact(d.dropped)} dropped`);
  facts.push(`last rows ${ago(d.rows_at)}`);
  if (d.owner) facts.push(`owner ${d.owner}`);
  return facts.join(", ");
}

function content(d: Dataset): HTMLElement[] {
  const wrote = d.wrote ? `+${compact(d.wrote)}` : kind(d.kind);
  const rows = d.rows === null ? wrote : counted(d.rows, "row", "rows", compact);
  const lost = d.dropped ? `${compact(d.dropped)} dropped` : d.held ? `${compact(d.held)} held` : "";
  return [
    h("span.line.head", {}, h("span.name", {}, d.short), mark(d.state)),
    h("span.line", {}, h("span", {}, rows), d.rules ? h(`span.rate.${grade(d.rate)}`, {}, percent(d.rate)) : ""),
    h(
      "span.line.quiet",
      {},
      h("span", {}, d.rows_at ? ago(d.rows_at) : ""),
      h("span", { class: lost ? "lost" : "" }, lost || duration(d.seconds)),
    ),
  ];
}

export function draw(datasets: Dataset[], open: (name: string) => void): Graph {
  let current = datasets;
  const placed = place(datasets);
  const known = shape(datasets);
  const nodes = datasets.map((d, i) => node(d, i, placed, open));
  // Tab enters the graph at the worst dataset, and leaves it again.
  const worst = datasets.reduce((w, d, i) => (severity(d.state) < severity(datasets[w].state) ? i : w), 0);
  nodes.forEach((n, i) => n.setAttribute("tabindex", i === worst ? "0" : "-1"));
  const plane = h("div.plane", {}, edges(placed), ...nodes);
  const view = h(
    "div.canvas",
    {
      role: "group",
      "aria-label": "Graph of the datasets, from what is read to what reads it: arrows walk, Enter opens a dataset",
    },
    plane,
  );
  const zoomed = camera(view, plane, placed);
  const tall =
    placed.height < 560 ? Math.max(260, placed.height + 24) : Math.min(900, Math.max(560, placed.height * LEGIBLE + 8));
  const element = h("div.graph", { "--tall": `${tall}px` }, view, zoomed.controls);
  const lit = plane.querySelector("g.lit") as SVGElement;
  view.classList.toggle("many", datasets.length > 150);
  const above: number[][] = datasets.map((d) => d.in);
  const below: number[][] = datasets.map(() => []);
  datasets.forEach((d, i) => d.in.forEach((j) => below[j].push(i)));

  function trace(i: number | null): void {
    view.classList.toggle("traced", i !== null);
    const chain = i === null ? new Set<number>() : new Set([...closure(i, above), ...closure(i, below)]);
    nodes.forEach((n, k) => n.classList.toggle("on", chain.has(k)));
    lit.replaceChildren(
      ...placed.edges.filter((e) => chain.has(e.from) && chain.has(e.to)).map((e) => s("path.edge", { d: e.path })),
    );
  }
  nodes.forEach((n, i) => {
    n.addEventListener("pointerenter", () => trace(i));
    n.addEventListener("pointerleave", () => trace(null));
    n.addEventListener("focus", () => {
      nodes.forEach((other, k) => other.setAttribute("tabindex", k === i ? "0" : "-1"));
      trace(i);
      if (n.matches(":focus-visible")) zoomed.reveal(placed.places[i]);
    });
    n.addEventListener("blur", () => trace(null));
    n.addEventListener("keydown", (event) => step(event as KeyboardEvent, i));
  });

  function step(event: KeyboardEvent, i: number): void {
    const here = placed.places[i];
    const ways: Record<string, number[]> = { ArrowRight: below[i], ArrowLeft: above[i] };
    const nearest = (k: number) => Math.abs(placed.places[k].y - here.y);
    let target: number | undefined = [...(ways[event.key] ?? [])].sort((a, b) => nearest(a) - nearest(b))[0];
    if (event.key === "Home") target = 0;
    if (event.key === "End") target = nodes.length - 1;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const way = event.key === "ArrowDown" ? 1 : -1;
      const column = placed.places
        .map((p, k) => ({ k, d: (p.y - here.y) * way, x: Math.abs(p.x - here.x) }))
        .filter((c) => c.x < 5 && c.d > 1);
      target = column.sort((a, b) => a.d - b.d)[0]?.k;
    }
    if (target !== undefined) {
      event.preventDefault();
      nodes[target].focus();
    }
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
    filter(matches) {
      nodes.forEach((n, i) => n.classList.toggle("dim", !matches(current[i])));
    },
  };
}

function dress(element: HTMLElement, d: Dataset): void {
  element.className = `node ${tone(d.state)} ${d.kind === "" ? "outside" : d.kind.toLowerCase()}`;
  element.setAttribute("aria-label", said(d));
}

function node(d: Dataset, i: number, placed: Placed, open: (name: string) => void): HTMLElement {
  const at = placed.places[i];
  const size = { "--x": `${at.x}px`, "--y": `${at.y}px`, "--w": `${WIDTH}px`, "--h": `${HEIGHT}px` };
  const element = h(
    "button",
    { type: "button", title: d.name, "data-key": `node-${d.name}`, ...size, onclick: () => open(d.name) },
    content(d),
  );
  dress(element, d);
  return element;
}

function edges(placed: Placed): SVGElement {
  const bands = placed.bands.flatMap((b) => [
    s("rect.band", { x: b.left, y: 0, width: b.right - b.left, height: placed.height, rx: 10 }),
    s("text.band", { x: b.left + 28, y: 26 }, b.name),
  ]);
  const paths = placed.edges.map((e) => s("path.edge", { d: e.path }));
  return s(
    "svg.edges",
    { width: placed.width, height: placed.height, "aria-hidden": "true" },
    ...bands,
    s("g.all", {}, ...paths),
    s("g.lit"),
  );
}

function closure(start: number, next: number[][]): Set<number> {
  const found = new Set<number>();
  const waiting = [start];
  while (waiting.length) {
    const i = waiting.pop() as number;
    if (!found.has(i)) {
      found.add(i);
      waiting.push(...next[i]);
    }
  }
  return found;
}
