// What changed code would do to the tables, as lakelet diff found it: each dataset, those that differ first.

import { load } from "./data";
import { type Child, empty, h, tile } from "./dom";
import { counted, kind, number, percent } from "./format";
import { datasetLink, link, shortOf, toUpdate } from "./links";
import { badge } from "./states";
import { numberCell, numbers, rowHead, table, texts } from "./tables";
import type { Overview, Ref } from "./types";
import { failureBox } from "./update";

/** What changed code would do to the tables; made in change_document.py. */
interface Change {
  /** The last update before: its id, and its number on this page. */
  update: string | null;
  n: number | null;
  datasets: ChangedDataset[];
}
/** A number of rows and its share. */
type Part = [number, number];
type Cell = string | null;
interface ChangedDataset {
  d: Ref;
  name: string;
  kind: string;
  state: string;
  /** What changed in its own definition; null where nothing did. */
  definition: { new: boolean; code: string[]; rules: string[]; settings: string[] } | null;
  /** Column, type before, type after. */
  schema: [string, string | null, string | null][];
  rows: { before: number; after: number; added: Part; removed: Part; changed: Part } | null;
  key: string[];
  key_source: string;
  /** Column, rows in which it changed, their share, samples: [key, value before, value after]. */
  columns: [string, number, number | null, [[string, Cell][], Cell, Cell][]][];
  /** What became of a row, and its cells; of one whose value changed: [before, after]. */
  samples: { columns: string[]; rows: [string, (Cell | [Cell, Cell])[]][] };
  /** Rule, action, violations before and after. */
  rules: [string, string, number | null, number | null][];
  /** Rows that drop rules left out, before and after. */
  dropped: [number | null, number] | null;
  error: { code: string; sentence: string; text: string } | null;
  notes: string[];
}

const STATES = ["failed", "skipped", "different", "new", "equal"];

export async function changeView(overview: Overview): Promise<HTMLElement> {
  if (overview.change === undefined) return noChange();
  const change = await load<Change>("change");
  const all = change.datasets;
  return h(
    "div.page.wide.change",
    {},
    h("h1", {}, "What the change would do"),
    h("p.sum", {}, summary(all)),
    h("p.sub", {}, base(overview, change), " Nothing of the storage was written."),
    all.length ? list(overview, all) : null,
    all.filter(hasDetails).map((one) => details(overview, one)),
  );
}

function noChange(): HTMLElement {
  const said = "This page was written without the result of lakelet diff. Write it with one: ";
  const how = h("code", {}, "lakelet diff --json > change.json; lakelet report --diff change.json");
  return h("div.page", {}, h("h1", {}, "No change is shown"), empty(said, how));
}

const hasDetails = (one: ChangedDataset): boolean => one.state !== "equal" || one.notes.length > 0;

function summary(all: ChangedDataset[]): string {
  if (!all.length) return "No definition changed since the last update: there was nothing to compare.";
  const counts = STATES.map((state): [string, number] => [state, all.filter((one) => one.state === state).length]);
  const found = counts.filter(([, count]) => count).map(([state, count]) => `${count} ${state}`);
  return `${counted(all.length, "dataset")} compared: ${found.join(", ")}.`;
}

/** With which tables the new rows were compared, and whether these are still the stored ones. */
function base(overview: Overview, change: Change): Child {
  if (change.update === null) return "No update had run before.";
  const compared = "Compared with the tables after ";
  if (change.n === null) return `${compared}update ${change.update.slice(0, 6)}, which is not on this page.`;
  const later = overview.updates - 1 - change.n;
  const stale = `${counted(later, "update")} ran since: compare again with lakelet diff --json.`;
  return [
    compared,
    link(toUpdate(change.n), `update ${shortOf(overview, change.n)}`),
    ".",
    later ? h("span.error", {}, stale) : "",
  ];
}

// --- all datasets ----------------------------------------------------------------------------------------------------

function list(overview: Overview, all: ChangedDataset[]): HTMLElement {
  const count = (rows?: number) => (rows ? numberCell(rows) : blank());
  const row = (one: ChangedDataset) =>
    h(
      "tr",
      {},
      rowHead(hasDetails(one) ? toDetails(overview, one) : datasetLink(overview, one.d)),
      h("td", {}, badge(one.state.toUpperCase())),
      h("td", {}, h("span", {}, definitionText(one))),
      one.rows ? numberCell(one.rows.after) : blank(),
      ...(["added", "removed", "changed"] as const).map((what) => count(one.rows?.[what][0])),
      one.state === "new" || !one.schema.length ? blank() : numberCell(counted(one.schema.length, "column")),
    );
  const heads = [
    ...texts("Dataset", "State", "Changed in its definition"),
    ...numbers("Rows after", "Added", "Removed", "Changed", "Schema"),
  ];
  return h("div.block", {}, table("Datasets of the change", heads, all.map(row)));
}

/** A cell that says nothing, and is left out of a card. */
const blank = (): HTMLElement => h("td.num.blank", {}, "–");

const nameOf = (overview: Overview, one: ChangedDataset): string =>
  typeof one.d === "number" ? overview.datasets[one.d].short : one.name;

const toDetails = (overview: Overview, one: ChangedDataset): HTMLElement =>
  h("a.name", { href: `#/change/${encodeURIComponent(one.name)}`, title: one.name }, nameOf(overview, one));

function definitionText(one: ChangedDataset): string {
  const found = one.definition;
  if (!found) return "nothing of its own";
  if (found.new) return "new";
  return aspects(one)
    .map(([aspect]) => aspect)
    .join(", ");
}

/** The parts of the definition that changed, by what they are. */
function aspects(one: ChangedDataset): [string, string[]][] {
  if (!one.definition || one.definition.new) return [];
  const { code, rules, settings } = one.definition;
  const found: [string, string[]][] = [
    ["code", code],
    ["rules", rules],
    ["settings", settings],
  ];
  return found.filter(([, names]) => names.length);
}

// --- one dataset -----------------------------------------------------------------------------------------------------

function details(overview: Overview, one: ChangedDataset): HTMLElement {
  const id = `change-${encodeURIComponent(one.name)}`;
  const name = nameOf(overview, one);
  return h(
    "section.block",
    { "data-part": one.name, "aria-labelledby": id },
    h(
      "h2",
      { id },
      typeof one.d === "number" ? datasetLink(overview, one.d) : name,
      " ",
      badge(one.state.toUpperCase()),
    ),
    h("p.sub", {}, kind(one.kind), one.definition ? "" : " · its own definition did not change"),
    definition(one),
    one.error ? failureBox(["not computed "], one.error) : "",
    one.state === "skipped" ? h("p", {}, "It was not computed, because a dataset that it reads could not be.") : "",
    counts(one),
    schema(name, one),
    columns(name, one),
    samples(name, one),
    rules(name, one),
    notes(one),
  );
}

function definition(one: ChangedDataset): HTMLElement | null {
  const found = aspects(one);
  if (!found.length) return null;
  const line = ([aspect, names]: [string, string[]]) =>
    h(
      "li",
      {},
      h("span.quiet", {}, `${aspect} `),
      names.map((part) => h("code.column", {}, part)),
    );
  return h("ul.schema", { "aria-label": "Changed in its definition" }, found.map(line));
}

const fromTo = (before: number | null, after: number | null): string =>
  before === after ? number(after) : `${number(before)} → ${number(after)}`;

function counts(one: ChangedDataset): HTMLElement | null {
  if (!one.rows || one.state === "equal") return null;
  if (one.state === "new") return h("p", {}, `${counted(one.rows.after, "row")} in a new table.`);
  const { before, after, added, removed, changed } = one.rows;
  const by = one.key.length ? `by ${one.key.join(", ")} (${one.key_source})` : "compared without a key";
  const part = (label: string, [rows, share]: Part, of: string) =>
    tile(label, number(rows), `${percent(share)} of the rows ${of}`, { mood: rows ? "warn" : "" });
  return h(
    "dl.tiles",
    {},
    tile("Rows", fromTo(before, after), by),
    part("Added", added, "after"),
    part("Removed", removed, "before"),
    part("Changed", changed, "on both sides"),
    one.dropped ? tile("Rows dropped by rules", fromTo(...one.dropped), "before and after") : null,
  );
}

const NULL = (): HTMLElement => h("span.null", {}, "NULL");
const shown = (value: Cell): Child => (value === null ? NULL() : value);
const old = (value: Cell): HTMLElement => h("del", {}, shown(value));
const fresh = (value: Cell): HTMLElement => h("ins", {}, shown(value));

/** A table below a heading; nothing without rows. */
function part(title: string, name: string, heads: HTMLElement[], rows: HTMLElement[], look = {}): Child {
  if (!rows.length) return null;
  return [h("h3", {}, title), table(`${title} of ${name}`, heads, rows, look)];
}

function schema(name: string, one: ChangedDataset): Child {
  const chip = ([column, , type]: ChangedDataset["schema"][number]) =>
    h("code.column", {}, column, h("span", {}, ` ${type ?? ""}`));
  if (one.state === "new")
    return h("ul.schema", {}, h("li", {}, h("span.quiet", {}, "columns "), one.schema.map(chip)));
  const side = (type: string | null, draw: (text: Cell) => HTMLElement) =>
    h("td", {}, type === null ? "–" : h("code", {}, draw(type)));
  const row = ([column, before, after]: ChangedDataset["schema"][number]) =>
    h("tr", {}, rowHead(h("code.column", {}, column)), side(before, old), side(after, fresh));
  return part("Schema", name, texts("Column", "Before", "After"), one.schema.map(row), { table: "narrow" });
}

function columns(name: string, one: ChangedDataset): Child {
  const example = ([key, before, after]: ChangedDataset["columns"][number][3][number]) =>
    h("p.example", {}, key.map(([k, v]) => `${k}=${v ?? "NULL"}`).join(", "), ": ", old(before), " → ", fresh(after));
  const row = ([column, rows, share, examples]: ChangedDataset["columns"][number]) =>
    h(
      "tr",
      {},
      rowHead(h("code.column", {}, column)),
      numberCell(rows),
      numberCell(percent(share)),
      h("td", {}, examples.map(example)),
    );
  const heads = [...texts("Column"), ...numbers("Rows changed", "Share"), ...texts("For example")];
  return part("Columns", name, heads, one.columns.map(row));
}

/** Some rows of each kind; a cell that changed has both values, and is marked. */
function samples(name: string, one: ChangedDataset): Child {
  const cell = (value: Cell | [Cell, Cell]) =>
    Array.isArray(value)
      ? h(
          "td.edit",
          { title: value.map((v) => v ?? "NULL").join(" → ") },
          h("span", {}, old(value[0]), " → ", fresh(value[1])),
        )
      : h("td", {}, value === null ? NULL() : h("span.cell", { title: value }, value));
  const row = ([what, cells]: ChangedDataset["samples"]["rows"][number]) =>
    h(`tr.${what}`, {}, rowHead(what), cells.map(cell));
  const heads = texts("Row", ...one.samples.columns);
  return part("Sample rows", name, heads, one.samples.rows.map(row), { table: "sample", box: "rows" });
}

function rules(name: string, one: ChangedDataset): Child {
  const row = ([rule, action, before, after]: ChangedDataset["rules"][number]) =>
    h(
      "tr",
      {},
      rowHead(h("code.rule", {}, rule)),
      h("td", {}, action ? h(`span.action.${action}`, {}, action) : "–"),
      numberCell(number(before)),
      numberCell(h(`span${(after ?? 0) > (before ?? 0) ? ".lost" : ""}`, {}, number(after))),
    );
  const heads = [...texts("Rule", "Action"), ...numbers("Violations before", "After")];
  return part("Rules", name, heads, one.rules.map(row), { table: "narrow" });
}

function notes(one: ChangedDataset): Child {
  if (!one.notes.length) return null;
  const lines = one.notes.map((note) => h("li", {}, note));
  return [h("h3", {}, "Notes: what was not compared, and why"), h("ul.texts", {}, lines)];
}
