// Quality over time: every rule with its latest measurements, worst first; table checks before them.

import { strip } from "./charts";
import { checkBox, filterBox, group, press, toggle } from "./controls";
import { empty, growing, growingRows, h, section } from "./dom";
import { ago, exactly, number, percent } from "./format";
import { datasetLink, link, toUpdate } from "./links";
import { askFor, isMine, ownedTexts, ownerChoice, ownerLine } from "./owners";
import { rate } from "./states";
import { numberCell, numbers, rateCell, rowHead, table, texts } from "./tables";
import type { Check, Overview, Point, Quality, QualityRow, Ref, RuleState, Streak } from "./types";

/** Measurements that are shown of a rule, at most. */
export const MOST = 40;
const FEWEST = 12;
let wanted = "";
let problems = false;
let order: "worst" | "name" = "worst";

export const latest = (points: Point[]): Point | null => points[points.length - 1] ?? null;
export const rateOf = (point: Point | null): number | null => (point ? rate(point[1], point[2]) : null);

/** Cells of the strips of a table: as many as its longest one needs. */
export const slotsOf = (rows: { points: Point[] }[]): number =>
  Math.max(FEWEST, ...rows.map((r) => Math.min(MOST, r.points.length)));

/** The edit of a rule's text since the measurement before the newest one: a fall by definition is none by data. */
function editSince(rule: RuleState): RuleState["edits"][number] | null {
  const [before, now] = [rule.points[rule.points.length - 2], latest(rule.points)];
  if (!before || !now) return null;
  return [...rule.edits].reverse().find(([n, text]) => n > before[0] && n <= now[0] && text.startsWith("text")) ?? null;
}

function trend(rule: RuleState): HTMLElement {
  const points = rule.points;
  const edit = editSince(rule);
  if (edit) return h("span.edited", { title: `Before: ${edit[2]}` }, "✎ new text");
  const now = rateOf(latest(points));
  const before = rateOf(points[points.length - 2] ?? null);
  if (now === null || before === null) return h("span.quiet", {}, "–");
  const change = now - before;
  if (Math.abs(change) < 0.00005) return h("span.quiet", {}, "=");
  const percentagePoints = Math.max(Math.abs(change) * 100, 0.01).toFixed(2);
  const title = "points of pass rate since the measurement before";
  return h(`span.${change < 0 ? "down" : "up"}`, { title }, `${change < 0 ? "▼" : "▲"} ${percentagePoints}`);
}

function stripText(rule: RuleState): string {
  const rates = rule.points.map(rateOf).filter((r): r is number => r !== null);
  if (!rates.length) return "Not measured yet";
  const [lowest, newest] = [Math.min(...rates), rates[rates.length - 1]];
  const edits = rule.edits.map(([, , before]) => `; a mark where its text was changed from ${before}`).join("");
  return `Pass rates of ${rates.length} updates: lowest ${percent(lowest)}, latest ${percent(newest)}${edits}`;
}

function action(text: string): HTMLElement {
  const known = ["drop", "fail", "quarantine"].includes(text);
  return h(`span.action.${known ? text : "warn"}`, {}, text || "rule of a view");
}

/** Since when, with the way to the first update of it. */
export const sinceLine = (streak: Streak | null | undefined): HTMLElement | null =>
  streak ? h("small.since", {}, "failing ", link(toUpdate(streak[0]), streak[2])) : null;

/** Below the name of a rule: by which values it stopped its flow, since when rows break it, what it was before. */
export function stateLines(rule: RuleState): (HTMLElement | null)[] {
  const values = (rule.stops ?? []).map(([name, value]) => h("code", {}, `${name} = ${value}`));
  const stops = rule.stops
    ? h("small.stops", {}, "stopped its flow", values.length ? ": the first such row has " : "", values)
    : null;
  const edit = rule.edits[rule.edits.length - 1];
  const edited = edit
    ? h("small.edited", {}, "✎ ", link(toUpdate(edit[0]), "changed"), ", ", h("code", {}, edit[1]))
    : null;
  return [stops, sinceLine(rule.failing), edited];
}

export const ruleHeads = (): HTMLElement[] => [
  ...texts("rule", "action"),
  ...numbers("pass rate", "change", "rows that broke it", "of rows"),
  ...texts("last updates"),
];

/** The cells of a rule after the one with its name. */
export function ruleCells(rule: RuleState & { action: string }, slots: number): HTMLElement[] {
  const now = latest(rule.points);
  const measured = rule.points.length
    ? strip(
        rule.points,
        slots,
        stripText(rule),
        rule.edits.map(([n]) => n),
      )
    : h("span.quiet", {}, "not measured yet");
  return [
    h("td", {}, action(rule.action)),
    rateCell(rateOf(now)),
    numberCell(trend(rule)),
    numberCell(now?.[2] ? h("b", {}, number(now[2])) : now?.[2]),
    numberCell(now && now[1] + now[2]),
    h("td", {}, measured),
  ];
}

/** `owner`: the one that the address names, or nothing. */
export function qualityView(overview: Overview, quality: Quality, owner = ""): HTMLElement {
  askFor(owner);
  if (!quality.rows.length && !quality.checks.length) return h("div.page.wide", {}, h("h1", {}, "Quality"), noRules());
  const slots = slotsOf(quality.rows);
  const body = h("tbody");
  const none = empty("No rule matches. Clear the filter to see all of them.");
  const count = h("span.count");
  const checked = h("div.checked");
  const drawn = table("Rules", ruleHeads(), body, { table: "rules" });
  const show = () => {
    const found = quality.rows.filter((r) => matches(overview, r)).sort(order === "worst" ? worstFirst : byDataset);
    count.textContent = String(found.length);
    body.replaceChildren();
    growing(found, (r) => row(overview, r, slots), body);
    none.hidden = found.length > 0;
    drawn.hidden = !found.length;
    press(orders, order);
    checked.replaceChildren(
      ...[
        checks(
          overview,
          quality.checks.filter((c) => matchesCheck(overview, c)),
        ),
      ].flatMap((c) => c ?? []),
    );
  };
  const orders = orderButtons(show);
  const filter = filterBox("Filter rules and datasets", "filter-rules", wanted, (text) => {
    wanted = text;
    show();
  });
  const box = checkBox("only what is broken", "problems", problems, (on) => {
    problems = on;
    show();
  });
  const owners = ownerChoice("owner-rules", [...quality.rows, ...quality.checks], show);
  const bar = h("div.toolbar", {}, filter, owners, box, group("div.tabs", "Order", orders));
  show();
  const heading = h("h2", { id: "s-rules" }, "Rules", count);
  return h(
    "div.page.wide",
    {},
    h("h1", {}, "Quality"),
    bar,
    checked,
    h("section.block", { "aria-labelledby": "s-rules" }, heading, key(), drawn, none),
  );
}

/** Below 0 for a rule that stopped its flow, however few rows broke it; then its pass rate; 2 if it is not measured. */
const badness = (r: RuleState & { action: string }): number => {
  const now = latest(r.points);
  return (rateOf(now) ?? 2) - (r.stops ? 4 : r.action.toLowerCase() === "fail" && now?.[2] ? 2 : 0);
};
export const worstFirst = (a: RuleState & { action: string }, b: RuleState & { action: string }): number =>
  badness(a) - badness(b);
const byDataset = (a: QualityRow, b: QualityRow): number => a.d - b.d;

function orderButtons(show: () => void): HTMLElement[] {
  const button = (which: typeof order, text: string) => {
    const choose = () => {
      order = which;
      show();
    };
    return toggle("button", "order", which, choose, text);
  };
  return [button("worst", "worst first"), button("name", "by dataset")];
}

export const noRules = (): HTMLElement =>
  empty(
    "No rules yet. A rule is a condition that the rows of a dataset must meet; ",
    "this page then shows how many did, update by update. The shortest one: ",
    h("code", {}, '@dlt.expect("has_id", "id IS NOT NULL")'),
  );

function key(): HTMLElement {
  const steps = [
    ["r5", "100%"],
    ["r4", "99.9%+"],
    ["r3", "99%+"],
    ["r2", "95%+"],
    ["r1", "below"],
  ];
  const shown = steps.map(([colour, text]) => h("span", {}, h(`i.${colour}`), text));
  return h("p.key", {}, "Pass rate of an update: ", shown);
}

/** A rule that stopped its flow is red. */
export const rowName = (r: RuleState): string => (r.stops ? "tr.stopped" : "tr");

function matches(overview: Overview, r: QualityRow): boolean {
  if (!isMine(r) || (problems && !latest(r.points)?.[2])) return false;
  return isWanted([r.rule, overview.datasets[r.d].name, r.constraint, ...ownedTexts(r)]);
}

function matchesCheck(overview: Overview, c: Check & { d: Ref }): boolean {
  if (!isMine(c) || (problems && c.success)) return false;
  const dataset = typeof c.d === "string" ? c.d : overview.datasets[c.d].name;
  return isWanted([c.name, dataset, c.message, ...ownedTexts(c)]);
}

const isWanted = (texts: string[]): boolean => !wanted || texts.some((text) => text.toLowerCase().includes(wanted));

function row(overview: Overview, r: QualityRow, slots: number): HTMLElement {
  const name = h("span.two", {}, datasetLink(overview, r.d, "rules"), h("code.rule", {}, r.rule));
  const constraint = h("small.code", { title: r.constraint }, r.constraint);
  return h(rowName(r), {}, rowHead(name, constraint, stateLines(r), ownerLine(r)), ruleCells(r, slots));
}

function checks(overview: Overview, found: Quality["checks"]): HTMLElement | null {
  if (!found.length) return null;
  const drawn = checkTable(found, (c) => datasetLink(overview, c.d, "rules"));
  return section("Table checks", found.length, drawn);
}

const SEVERITIES = ["critical", "warning", "info"];
const badnessOfCheck = (c: Check): number => Number(c.success ?? 0.5) * 10 + SEVERITIES.indexOf(c.severity);

/** Results of checks of whole tables, the worst first; `about` gives the dataset where the table is not about one. */
export function checkTable<C extends Check & { d?: Ref }>(
  found: C[],
  about?: (check: C & { d: Ref }) => HTMLElement,
): HTMLElement {
  const sorted = [...found].sort((a, b) => badnessOfCheck(a) - badnessOfCheck(b));
  const row = (c: C) => {
    const [mood, result] =
      c.success === null ? ["quiet", "not run"] : c.success ? ["up", "✓ passes"] : ["down", "✕ failed"];
    const dataset = about ? [about(c as C & { d: Ref }), " "] : "";
    return h(
      "tr",
      {},
      rowHead(dataset, h("code.rule", {}, c.name), h("small", {}, c.message), sinceLine(c.failing), ownerLine(c)),
      h("td", {}, h(`span.${mood}`, {}, result), h("small", {}, c.severity)),
      h("td", {}, h("span.code", {}, c.observed || "–")),
      h("td", {}, h("span.code", {}, c.expected || "–")),
      h("td", { title: exactly(c.at) }, ago(c.at), c.version !== null ? h("small", {}, `version ${c.version}`) : ""),
    );
  };
  return table("Table checks", texts("check", "result", "observed", "expected", "when"), growingRows(sorted, row));
}
