// The quality of one dataset: pass rates over time, its rules, the rows held back.

import { chart, figure, type Line } from "./charts";
import { css, empty, h, section } from "./dom";
import { compact, percent, when } from "./format";
import { link, toUpdate } from "./links";
import { ownerLine } from "./owners";
import {
  checkTable,
  MOST,
  noRules,
  rateOf,
  rowName,
  ruleCells,
  ruleHeads,
  slotsOf,
  stateLines,
  worstFirst,
} from "./quality";
import { sampleTable } from "./samples";
import { rowHead, table } from "./tables";
import type { DatasetPage, Rule } from "./types";

const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];
/** Columns of a quarantine table that tell why and when, in the order in which they are shown. */
const REASONS = ["_broken_rules", "_quarantined_at", "_update_id", "_source_file", "_released_by"];
const HIDDEN = ["_flow_name"];

export function quality(page: DatasetPage): HTMLElement {
  const title = "Quality over time";
  if (!page.runs.n?.length) {
    const none = "No rows were written yet: pass rates, dropped and quarantined rows appear with the first run.";
    return section(title, null, empty(none));
  }
  const moments = page.runs.at ?? [];
  const rows: Line = { label: "rows", values: page.runs.rows ?? [], colour: css("--accent"), bars: true };
  const written = chart("Rows written by each run", moments, [rows], compact, [0, null]);
  const lost = chart("Rows dropped and held back by each run", moments, lostLines(page), compact, [0, null]);
  return section(
    title,
    null,
    h(
      "div.charts",
      {},
      passRates(page, moments),
      figure("Rows written", written),
      page.rules.length ? figure("Rows dropped and held back", lost) : null,
    ),
  );
}

/** The rules that were broken most, as lines. */
function passRates(page: DatasetPage, moments: (number | null)[]): HTMLElement | null {
  const measured = page.rules.filter((rule) => rule.points.length).sort((a, b) => lowest(a) - lowest(b));
  const shown = measured.slice(0, COLOURS.length);
  if (!shown.length) return null;
  const position = new Map(page.runs.n?.map((update, i) => [update, i]));
  const lines = shown.map((rule, k): Line => {
    const values: (number | null)[] = moments.map(() => null);
    for (const point of rule.points) {
      const i = position.get(point[0]);
      if (i !== undefined) values[i] = rateOf(point);
    }
    return { label: rule.name, values, colour: css(COLOURS[k]) };
  });
  const all = page.rules.length === shown.length;
  const title = all ? "Pass rate" : `Pass rate: the ${shown.length} rules that were broken most`;
  const label = `Pass rates of ${lines.map((line) => line.label).join(", ")}`;
  const edits = shown.flatMap((rule, k) =>
    rule.edits.flatMap(([n, text]) => {
      const at = moments.findIndex((_, i) => (page.runs.n?.[i] ?? -1) >= n);
      return at < 0 ? [] : [{ at, colour: css(COLOURS[k]), text: `${rule.name}: ${text}` }];
    }),
  );
  const drawn = chart(label, moments, lines, percent, [null, 1], percent, edits);
  const told = edits.map((e) => h("li", { "--c": e.colour }, h("i"), `${when(moments[e.at])} `, h("code", {}, e.text)));
  return figure(title, h("div", {}, drawn, told.length ? h("ul.edits", {}, told) : ""));
}

function lostLines(page: DatasetPage): Line[] {
  const { dropped = [], quarantined = [] } = page.runs;
  const lines: Line[] = [{ label: "dropped", values: dropped, colour: css("--failed"), bars: true }];
  if (quarantined.some(Boolean)) lines.push({ label: "quarantined", values: quarantined, colour: css("--warn") });
  return lines;
}

const lowest = (rule: Rule): number => Math.min(...rule.points.slice(-MOST).map((point) => rateOf(point) ?? 1), 1);

export function rules(page: DatasetPage): HTMLElement {
  if (!page.rules.length && !page.checks.length) return section("Rules", 0, noRules());
  const slots = slotsOf(page.rules);
  const row = (rule: Rule) => {
    const constraint = h("small.code", {}, rule.constraint);
    const name = rowHead(
      h("code.rule", {}, rule.name),
      constraint,
      stateLines(rule),
      brokenRows(rule),
      ownerLine(rule),
    );
    return h(rowName(rule), {}, name, ruleCells(rule, slots));
  };
  return section(
    "Rules",
    page.rules.length + page.checks.length,
    page.rules.length
      ? table("Rules", ruleHeads(), [...page.rules].sort(worstFirst).map(row), { table: "rules" })
      : null,
    page.checks.length ? [h("h3", {}, "Checks of the whole table"), checkTable(page.checks)] : null,
  );
}

/** A few rows that broke a rule, each by the columns that the rule reads. */
function brokenRows(rule: Rule): HTMLElement | null {
  const found = rule.sample;
  if (!found) return null;
  const row = ([values, file]: [[string, string][], string | null]) =>
    h(
      "li",
      {},
      values.map(([name, value]) => h("code", {}, `${name} = ${value}`)),
      file ? h("small", {}, file.replace(/^file:(\/\/)?/, "")) : "",
    );
  const title = h("small", {}, "rows that broke it, of update ", link(toUpdate(found.n), found.short));
  return h("div.broke", {}, title, h("ul", {}, found.rows.map(row)));
}

export function quarantine(page: DatasetPage): HTMLElement {
  const found = page.table?.quarantine;
  if (!found) return section("Quarantine", null, noQuarantine(page));
  const order = [
    ...REASONS.filter((column) => found.columns.includes(column)),
    ...found.columns.filter((column) => !REASONS.includes(column) && !HIDDEN.includes(column)),
  ].map((column) => found.columns.indexOf(column));
  const broken = found.columns.indexOf("_broken_rules");
  const names = (value: string | null, column: number) =>
    column === broken && value ? listOf(value).map((rule) => h("code.reason", {}, rule)) : null;
  const rows = sampleTable("Rows held back", found, order, names);
  return section("Quarantine", found.held, found.rows.length ? rows : empty(found.note || "No row is held back."));
}

function noQuarantine(page: DatasetPage): HTMLElement {
  if (!page.rules.some((rule) => rule.action === "drop"))
    return empty("No quarantine: no rule of this dataset drops rows.");
  const property = h("code", {}, "lakelet.quarantine = true");
  return empty(
    "Dropped rows of this dataset are not kept. Its table property ",
    property,
    " keeps them, with the rules that each one broke.",
  );
}

/** The members of a JSON array; any other text is its only member. */
function listOf(text: string): string[] {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? found.map(String) : [text];
  } catch {
    return [text];
  }
}
