// Quality over time: every rule with its latest measurements, worst first; table checks before them.

import { strip } from "./charts";
import { empty, growing, h, section } from "./dom";
import { ago, exactly, number, percent } from "./format";
import { datasetLink } from "./links";
import { grade, rate } from "./states";
import type { Check, Overview, Point, Quality, QualityRow, Ref } from "./types";

const SLOTS = 40;
let slots = SLOTS;
let wanted = "", problems = false, order: "worst" | "name" = "worst";

export const latest = (points: Point[]): Point | null => points[points.length - 1] ?? null;
export const rateOf = (point: Point | null): number | null => (point ? rate(point[1], point[2]) : null);

/** Cells of the strips of a table: as many as its longest one needs. */
export const slotsOf = (rows: { points: Point[] }[]): number => Math.max(12, ...rows.map((r) => Math.min(SLOTS, r.points.length)));

export function trend(points: Point[]): number | null {
  const now = rateOf(latest(points)), before = rateOf(points[points.length - 2] ?? null);
  return now === null || before === null ? null : now - before;
}

export function trendText(change: number | null): HTMLElement {
  if (change === null || Math.abs(change) < 0.00005) return h("span.quiet", {}, change === null ? "–" : "=");
  const points = Math.max(Math.abs(change) * 100, 0.01).toFixed(2);
  return h(`span.${change < 0 ? "down" : "up"}`, { title: "points of pass rate since the measurement before" }, `${change < 0 ? "▼" : "▲"} ${points}`);
}

export function stripText(points: Point[]): string {
  const rates = points.map(rateOf).filter((r): r is number => r !== null);
  return rates.length ? `Pass rates of ${rates.length} updates: lowest ${percent(Math.min(...rates))}, latest ${percent(rates[rates.length - 1])}` : "Not measured yet";
}

export const action = (text: string): HTMLElement => h(`span.action.${["drop", "fail", "quarantine"].includes(text) ? text : "warn"}`, {}, text || "rule of a view");

export function qualityView(overview: Overview, quality: Quality): HTMLElement {
  const body = h("tbody"), none = empty("No rule matches. Clear the filter to see all of them."), count = h("span.count");
  const table = h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Rules" }, h("table.data.rules", {}, h("thead", {}, h("tr", {},
    h("th", { scope: "col" }, "rule"), h("th", { scope: "col" }, "action"), h("th.num", { scope: "col" }, "pass rate"), h("th.num", { scope: "col" }, "change"),
    h("th.num", { scope: "col" }, "broken"), h("th.num", { scope: "col" }, "of rows"), h("th", { scope: "col" }, "last updates"))), body));
  const show = () => {
    const found = quality.rows.filter((r) => matches(overview, r));
    found.sort(order === "worst" ? (a, b) => (rateOf(latest(a.points)) ?? 2) - (rateOf(latest(b.points)) ?? 2) : (a, b) => a.d - b.d);
    count.textContent = String(found.length);
    body.replaceChildren();
    growing(found, (r) => row(overview, r), body);
    none.hidden = found.length > 0; table.hidden = !found.length;
    for (const b of sorts) b.setAttribute("aria-pressed", String(b.dataset.order === order));
  };
  const sorts = (["worst", "name"] as const).map((o) => h("button", { type: "button", "data-order": o, "data-key": `order-${o}`, onclick: () => { order = o; show(); } }, o === "worst" ? "worst first" : "by dataset"));
  const filter = h("input", { type: "search", placeholder: "Filter rules and datasets", "aria-label": "Filter rules and datasets", "data-key": "filter-rules", value: wanted, oninput: (e: Event) => { wanted = (e.target as HTMLInputElement).value.trim().toLowerCase(); show(); } });
  const box = h("input", { type: "checkbox", "data-key": "problems", checked: problems, onchange: (e: Event) => { problems = (e.target as HTMLInputElement).checked; show(); } });
  slots = slotsOf(quality.rows);
  if (!quality.rows.length && !quality.checks.length) return h("div.page.wide", {}, h("h1", {}, "Quality"), noRules());
  show();
  return h("div.page.wide", {}, h("h1", {}, "Quality"), checks(overview, quality),
    h("section.block", { "aria-labelledby": "s-rules" }, h("h2", { id: "s-rules" }, "Rules", count),
      h("div.toolbar", {}, filter, h("label.check", {}, box, "only rules with broken rows"), h("div.tabs", { role: "group", "aria-label": "Order" }, sorts)),
      key(), table, none));
}

export const noRules = (): HTMLElement => empty("No rules yet. A rule is a condition that the rows of a dataset must meet; this page then shows how many did, update by update. The shortest one: ",
  h("code", {}, "@dlt.expect(\"has_id\", \"id IS NOT NULL\")"));

function key(): HTMLElement {
  const steps = [["r5", "100%"], ["r4", "99.9%+"], ["r3", "99%+"], ["r2", "95%+"], ["r1", "below"]];
  return h("p.key", {}, "Pass rate of an update: ", steps.map(([c, t]) => h("span", {}, h(`i.${c}`), t)));
}

function matches(overview: Overview, r: QualityRow): boolean {
  if (problems && !(latest(r.points)?.[2])) return false;
  return !wanted || r.rule.toLowerCase().includes(wanted) || overview.datasets[r.d].name.toLowerCase().includes(wanted) || r.constraint.toLowerCase().includes(wanted);
}

function row(overview: Overview, r: QualityRow): HTMLElement {
  const now = latest(r.points), share = rateOf(now);
  return h("tr", {},
    h("th", { scope: "row" }, h("span.two", {}, datasetLink(overview, r.d, "rules"), h("code.rule", {}, r.rule)), h("small.code", { title: r.constraint }, r.constraint)),
    h("td", {}, action(r.action)),
    h("td.num", {}, h(`span.rate.${grade(share)}`, {}, percent(share))),
    h("td.num", {}, trendText(trend(r.points))),
    h("td.num", {}, now?.[2] ? h("b", {}, number(now[2])) : now ? "0" : "–"),
    h("td.num", {}, now ? number(now[1] + now[2]) : "–"),
    h("td", {}, r.points.length ? strip(r.points, slots, stripText(r.points)) : h("span.quiet", {}, "not measured yet")));
}

function checks(overview: Overview, quality: Quality): HTMLElement | null {
  if (!quality.checks.length) return null;
  const sorted = [...quality.checks].sort((a, b) => Number(a.success ?? 0.5) - Number(b.success ?? 0.5));
  return section("Table checks", sorted.length, checkTable(sorted, (c) => datasetLink(overview, c.d, "rules")));
}

/** Results of checks of whole tables; `about` gives the dataset where the table is not about one. */
export function checkTable<C extends Check & { d?: Ref }>(found: C[], about?: (check: C & { d: Ref }) => HTMLElement): HTMLElement {
  const body = h("tbody");
  growing(found, (c) => {
    const state = c.success === null ? ["quiet", "not run"] : c.success ? ["up", "✓ passes"] : ["down", "✕ failed"];
    return h("tr", {}, h("th", { scope: "row" }, about ? [about(c as C & { d: Ref }), " "] : "", h("code.rule", {}, c.name), h("small", {}, c.message)),
      h("td", {}, h(`span.${state[0]}`, {}, state[1]), h("small", {}, c.severity)),
      h("td", {}, h("span.code", {}, c.observed || "–")), h("td", {}, h("span.code", {}, c.expected || "–")),
      h("td", { title: exactly(c.at) }, ago(c.at), c.version !== null ? h("small", {}, `version ${c.version}`) : ""));
  }, body);
  const heads = ["check", "result", "observed", "expected", "when"];
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Table checks" }, h("table.data", {}, h("thead", {}, h("tr", {}, heads.map((t) => h("th", { scope: "col" }, t)))), body));
}
