// The first view: how the newest update went, what it changed, and the datasets as a graph or as a list.

import { bars, rowsText } from "./charts";
import { empty, growing, h, section } from "./dom";
import { ago, between, compact, counted, duration, exactly, kind, number, percent, when } from "./format";
import { draw, type Graph } from "./graph";
import { byName, link, toDataset, toUpdate } from "./links";
import { badge, grade, GROUPS, mark, tone, word } from "./states";
import type { Dataset, Overview, Summary } from "./types";

type Shape = "graph" | "list";
let shape: Shape | null = null;
let graph: Graph | null = null;
let wanted = "", only = "";

const open = (name: string) => { location.hash = toDataset(name); };

export function overviewView(overview: Overview): HTMLElement {
  const latest = overview.recent[overview.recent.length - 1];
  if (!latest) return h("div.page", {}, h("h1", {}, "No updates yet"), empty("This page shows the updates of a pipeline, its datasets and the quality of their rows. Run the first one: ", h("code", {}, "lakelet run")));
  return h("div.page.wide", {}, headline(overview, latest), changes(overview), datasets(overview));
}

function headline(overview: Overview, latest: Summary): HTMLElement {
  const all = overview.datasets, rules = all.reduce((n, d) => n + d.rules, 0);
  const broken = all.reduce((n, d) => n + d.broken, 0), held = all.reduce((n, d) => n + (d.held ?? 0), 0);
  const [failing, left, checks] = [0, 1, 2].map((i) => all.reduce((n, d) => n + d.checks[i], 0));
  // A failed dataset shows what was measured before: its newest rows may have broken a rule.
  const clean = all.filter((d) => d.rules && d.rate === 1 && d.state !== "FAILED").length, measured = all.filter((d) => d.rules && d.rate !== null).length;
  const done = all.filter((d) => d.state === "COMPLETED" || d.state === "IDLE").length, stored = all.filter((d) => d.state).length;
  const running = latest.end === null;
  const tiles = [
    tile("Up to date", `${done} of ${stored}`, counted(all.length, "dataset")),
    tile("Rows written", compact(latest.rows), "by this update"),
    tile("Every rule met", measured ? `${clean} of ${measured}` : "–", broken ? `${compact(broken)} rows broke one of ${rules}` : counted(rules, "rule"), broken ? "warn" : ""),
    tile("Dropped", compact(latest.dropped), held ? `${compact(held)} held in quarantine` : "by this update", latest.dropped ? "warn" : ""),
    checks ? tile("Table checks", checksText(failing, left, checks), counted(checks, "check") + (left && left < checks ? `, ${left} not run` : ""), failing ? "bad" : left ? "warn" : "") : null,
  ];
  return h("header.headline", {},
    h("div", {},
      h("p.over", {}, overview.pipelines.join(", ") || "pipeline"),
      h("h1", {}, h("span.sr", {}, "Newest update: "), badge(latest.state), " ", link(toUpdate(latest.n), `update ${latest.short}`)),
      h("p.sub", { title: exactly(latest.start) }, running ? `running since ${when(latest.start)}` : `${ago(latest.end)}, took ${duration(between(latest.start, latest.end))}`,
        latest.first_error ? h("span.error", {}, latest.first_error) : ""),
      strip(overview)),
    h("dl.tiles", {}, tiles));
}

function checksText(failing: number, left: number, all: number): string {
  if (failing) return `${failing} failed`;
  return left === all ? "not run" : left ? `${all - left} pass` : "all pass";
}

function tile(label: string, value: string, more: string, mood = ""): HTMLElement {
  return h(`div.tile${mood && `.${mood}`}`, {}, h("dt", {}, label), h("dd", {}, h("b", {}, value), h("small", {}, more)));
}

/** The newest updates as bars: height by duration, colour by state. */
function strip(overview: Overview): HTMLElement {
  const longest = Math.max(...overview.recent.map((u) => between(u.start, u.end) ?? 0), 1);
  return h("nav.strip", { "aria-label": "Newest updates" }, overview.recent.map((u) => {
    const seconds = between(u.start, u.end);
    const said = `update ${u.short}, ${word(u.state)}, ${when(u.start)}, ${duration(seconds)}`;
    return h(`a.bar.${tone(u.state)}`, { href: toUpdate(u.n), title: said, "aria-label": said, "--h": `${4 + 24 * Math.sqrt((seconds ?? longest) / longest)}px` });
  }));
}

const TONES: Record<string, [string, string]> = { bad: ["FAILED", "failure"], warning: ["warn", "warning"], good: ["COMPLETED", "improvement"], neutral: ["", "note"] };

function changes(overview: Overview): HTMLElement {
  const found = overview.changes, shown = 6;
  const draw = ([mood, about, rule, text]: string[]) => {
    const name = overview.datasets[byName(overview, about)]?.short ?? about;
    return h(`li.${mood}`, {},
      h("span.dot", {}, h("span.sr", {}, (TONES[mood] ?? TONES.neutral)[1])),
      h("p", {}, about ? link(toDataset(about), name) : "", about ? " " : "", rule ? h("code", {}, rule) : "", rule ? " " : "", text));
  };
  const list = h("ul.changes", {}, found.slice(0, shown).map(draw));
  const rest = found.length > shown
    ? h("button.plain", { type: "button", onclick: (event: Event) => { (event.target as HTMLElement).remove(); growing(found.slice(shown), draw, list); } }, `Show ${counted(found.length - shown, "more change")}`)
    : null;
  const before = overview.updates > 1 ? "Nothing changed: the same states, pass rates, columns and rules as in the update before." : "Nothing to report: this is the first update, and every rule holds.";
  return section(overview.updates > 1 ? "Since the last update" : "Found by the first update", found.length || null, found.length ? [list, rest] : empty(before));
}

function datasets(overview: Overview): HTMLElement {
  const all = overview.datasets;
  shape ??= window.innerWidth < 720 ? "list" : "graph";
  const holder = h("div.holder");
  const matches = (d: Dataset) => (!wanted || d.name.toLowerCase().includes(wanted)) && (!only || (GROUPS.find(([g]) => g === only)?.[1] ?? []).includes(d.state));
  const show = () => {
    if (shape === "graph") {
      if (!graph || !graph.update(all)) graph = draw(all, open);
      graph.filter(matches);
      if (graph.element.parentElement !== holder) holder.replaceChildren(graph.element);
    } else holder.replaceChildren(list(overview, all.filter(matches)));
    for (const b of tabs) b.setAttribute("aria-pressed", String(b.dataset.shape === shape));
    for (const b of chips) b.setAttribute("aria-pressed", String(b.dataset.group === only));
  };
  const tabs = (["graph", "list"] as Shape[]).map((s) => h("button", { type: "button", "data-shape": s, "data-key": `shape-${s}`, onclick: () => { shape = s; show(); } }, s));
  const chips = GROUPS.map(([group, states]) => [group, states[0], all.filter((d) => states.includes(d.state)).length] as const).filter(([, , n]) => n)
    .map(([group, state, n]) => h(`button.chip.${tone(state)}`, { type: "button", "data-group": group, "data-key": `chip-${group}`, onclick: () => { only = only === group ? "" : group; show(); } }, mark(state), group, h("b", {}, n)));
  const filter = h("input", { type: "search", placeholder: "Filter datasets", "aria-label": "Filter datasets", value: wanted, "data-key": "filter", oninput: (e: Event) => { wanted = (e.target as HTMLInputElement).value.trim().toLowerCase(); show(); } });
  const bar = h("div.toolbar", {}, filter, h("div.chips", { role: "group", "aria-label": "State" }, chips), h("div.tabs", { role: "group", "aria-label": "Shape" }, tabs));
  show();
  return section("Datasets", all.length, all.length ? [bar, holder] : empty("No datasets are defined in the updates on this page."));
}

function list(overview: Overview, shown: Dataset[]): HTMLElement {
  const body = h("tbody");
  growing(shown, (d) => row(overview, d), body);
  const heads = ["dataset", "state", "rows", "written", "pass rate", "dropped", "last rows", "took", "recent runs"];
  const right = new Set(["rows", "written", "pass rate", "dropped", "took"]);
  return shown.length
    ? h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Datasets as a list" }, h("table.data.sets", {}, h("thead", {}, h("tr", {}, heads.map((t) => h(`th${right.has(t) ? ".num" : ""}`, { scope: "col" }, t)))), body))
    : empty("No dataset matches. Clear the filter to see all of them.");
}

function row(_: Overview, d: Dataset): HTMLElement {
  return h("tr", {},
    h("th", { scope: "row" }, link(toDataset(d.name), h("span.name", { title: d.name }, d.short)), h("small", {}, [kind(d.kind), d.layer && !/^\d+$/.test(d.layer) ? d.layer : ""].filter(Boolean).join(" · "))),
    h("td", {}, badge(d.state)),
    h("td.num", {}, number(d.rows)),
    h("td.num", {}, d.state ? number(d.wrote) : "–"),
    h("td.num", {}, d.rules ? h(`span.rate.${grade(d.rate)}`, {}, percent(d.rate)) : h("span.quiet", {}, "no rules")),
    h("td.num", {}, d.dropped ? h("span.lost", {}, number(d.dropped)) : "–"),
    h("td", { title: exactly(d.rows_at) }, ago(d.rows_at)),
    h("td.num", {}, duration(d.seconds)),
    h("td", {}, d.wrote_series.length ? bars(d.wrote_series, rowsText(d.wrote_series)) : ""));
}
