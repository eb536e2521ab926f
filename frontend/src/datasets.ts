// The datasets of the newest update, as a graph or as a list.

import { bars, rowsText } from "./charts";
import { filterBox, group, press, toggle } from "./controls";
import { empty, growingRows, h, section } from "./dom";
import { ago, duration, exactly, kind } from "./format";
import { draw, type Graph } from "./graph";
import { link, toDataset } from "./links";
import { isMine, ownedTexts, ownerChoice } from "./owners";
import { sinceLine } from "./quality";
import { badge, GROUPS, mark, severity, tone } from "./states";
import { lostCell, numberCell, numbers, rateCell, rowHead, table, texts } from "./tables";
import type { Dataset, Overview } from "./types";

type Shape = "graph" | "list";
const NARROW = 720;
let shape: Shape | null = null;
let graph: Graph | null = null;
let wanted = "";
let only = "";

const open = (name: string) => {
  location.hash = toDataset(name);
};

export function datasets(overview: Overview): HTMLElement {
  const all = overview.datasets;
  if (!all.length) return section("Datasets", 0, empty("No datasets are defined in the updates on this page."));
  shape ??= window.innerWidth < NARROW ? "list" : "graph";
  const holder = h("div.holder");
  const show = () => {
    if (shape === "graph") showGraph(holder, all);
    else holder.replaceChildren(list(all.filter(matches).sort(worstFirst)));
    press(shapes, shape ?? "");
    press(states, only);
  };
  const shapes = shapeButtons(show);
  const states = stateButtons(all, show);
  const filter = filterBox("Filter datasets", "filter", wanted, (text) => {
    wanted = text;
    show();
  });
  const owners = ownerChoice("owner", all, show);
  const bar = h(
    "div.toolbar",
    {},
    filter,
    owners,
    group("div.chips", "State", states),
    group("div.tabs", "Shape", shapes),
  );
  show();
  return section("Datasets", all.length, bar, holder);
}

/** By state, then by pass rate. */
const worstFirst = (a: Dataset, b: Dataset): number =>
  severity(a.state) - severity(b.state) || (a.rate ?? 2) - (b.rate ?? 2);

function matches(d: Dataset): boolean {
  const states = GROUPS.find(([name]) => name === only)?.[1] ?? [];
  const isWanted = !wanted || [d.name, ...ownedTexts(d)].some((text) => text.toLowerCase().includes(wanted));
  return isWanted && isMine(d) && (!only || states.includes(d.state));
}

/** The graph that is there stays where it fits, with its place and focus. */
function showGraph(holder: HTMLElement, all: Dataset[]): void {
  if (!graph || !graph.update(all)) graph = draw(all, open);
  graph.filter(matches);
  if (graph.element.parentElement !== holder) holder.replaceChildren(graph.element);
}

function shapeButtons(show: () => void): HTMLElement[] {
  const button = (which: Shape) => {
    const choose = () => {
      shape = which;
      show();
    };
    return toggle("button", "shape", which, choose, which);
  };
  return [button("graph"), button("list")];
}

function stateButtons(all: Dataset[], show: () => void): HTMLElement[] {
  return GROUPS.flatMap(([name, states]) => {
    const count = all.filter((d) => states.includes(d.state)).length;
    if (!count) return [];
    const choose = () => {
      only = only === name ? "" : name;
      show();
    };
    const content = [mark(states[0]), name, h("b", {}, count)];
    return [toggle(`button.chip.${tone(states[0])}`, "chip", name, choose, content)];
  });
}

function list(shown: Dataset[]): HTMLElement {
  if (!shown.length) return empty("No dataset matches. Clear the filter to see all of them.");
  const heads = [
    ...texts("dataset", "state"),
    ...numbers("rows", "rows written", "pass rate", "rows dropped"),
    ...texts("last rows"),
    ...numbers("took"),
    ...texts("recent runs"),
  ];
  return table("Datasets as a list", heads, growingRows(shown, row), { table: "sets" });
}

function row(d: Dataset): HTMLElement {
  const layer = d.layer && !/^\d+$/.test(d.layer) ? d.layer : "";
  const name = link(toDataset(d.name), h("span.name", { title: d.name }, d.short));
  return h(
    "tr",
    {},
    rowHead(name, h("small", {}, [kind(d.kind), layer, d.owner].filter(Boolean).join(" · ")), sinceLine(d.failing)),
    h("td", {}, badge(d.state)),
    numberCell(d.rows),
    numberCell(d.state ? d.wrote : null),
    d.rules ? rateCell(d.rate) : numberCell(h("span.quiet", {}, "no rules")),
    lostCell(d.dropped),
    h("td", { title: exactly(d.rows_at) }, ago(d.rows_at)),
    numberCell(duration(d.seconds)),
    h("td", {}, d.wrote_series.length ? bars(d.wrote_series, rowsText(d.wrote_series)) : ""),
  );
}
