// What one dataset is made of and stored as: runs, columns with their lineage, source, sample, versions.

import { empty, growingRows, h, section } from "./dom";
import { counted, duration, exactly, number, when } from "./format";
import { datasetLink, link, toUpdate } from "./links";
import { sampleTable } from "./samples";
import { badge } from "./states";
import { lostCell, numberCell, numbers, rowHead, someCell, table, texts } from "./tables";
import type { DatasetPage, Overview, Ref } from "./types";
import { schemaList } from "./update";

export function runs(page: DatasetPage): HTMLElement {
  const r = page.runs;
  const newestFirst = (r.n ?? []).map((_, i) => i).reverse();
  const idle = page.idle ? `${counted(page.idle, "more update")} had nothing new for it.` : "";
  const note = idle ? h("p.quiet", {}, idle) : null;
  if (!newestFirst.length) return section("Runs", 0, empty("It has not run in the updates on this page."), note);
  const row = (i: number) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", title: exactly(r.at?.[i]) }, link(toUpdate(r.n?.[i] ?? 0), when(r.at?.[i]))),
      h("td", {}, badge(r.state?.[i] ?? "")),
      numberCell(r.rows?.[i]),
      someCell(r.deleted?.[i]),
      lostCell(r.dropped?.[i]),
      someCell(r.quarantined?.[i]),
      numberCell(duration(r.seconds?.[i])),
    );
  const heads = [...texts("started", "state"), ...numbers("rows", "deleted", "dropped", "quarantined", "took")];
  const drawn = table("Runs", heads, growingRows(newestFirst, row, 12), { table: "narrow", box: "low" });
  return section("Runs", newestFirst.length, drawn, note);
}

export function columns(overview: Overview, page: DatasetPage): HTMLElement {
  if (!page.columns.length) return section("Columns", 0, empty("Its columns are known after its first run."));
  const lineage = page.lineage || page.columns.some(([, , , below]) => below.length);
  const refs = (found: [Ref, string][]) => {
    if (!found.length) return h("span.quiet", {}, "–");
    const lines = found.map(([d, c]) => h("li", {}, datasetLink(overview, d, "columns"), h("code", {}, `.${c}`)));
    return h("ul.refs", {}, lines);
  };
  const body = growingRows(page.columns, ([name, type, above, below, comment]) =>
    h(
      "tr",
      {},
      rowHead(h("code.rule", {}, name), comment ? h("small", {}, comment) : ""),
      h("td", {}, h("span.type", { title: type }, type)),
      lineage ? [h("td", {}, refs(above)), h("td", {}, refs(below))] : null,
    ),
  );
  const heads = lineage ? texts("column", "type", "computed from", "used by") : texts("column", "type");
  const note = lineage ? null : h("p.quiet", {}, "The event log of this storage has no lineage of columns.");
  return section("Columns", page.columns.length, table("Columns", heads, body, { box: "low" }), note);
}

export function transforms(page: DatasetPage): HTMLElement | null {
  if (!page.transforms.length) return null;
  const calls = page.transforms.map((call) => h("li", {}, h("code", {}, call)));
  return section(
    "Transforms",
    page.transforms.length,
    h(
      "p.quiet",
      {},
      "The calls of ",
      h("code", {}, "lakelet.transforms"),
      " that its query is made of, in order; keys and secrets are left out.",
    ),
    h("ol.calls", {}, calls),
  );
}

export function source(page: DatasetPage): HTMLElement {
  const found = page.source;
  if (!found) return section("Source", null, empty("The event log does not say which file defines it."));
  const place = [h("code", {}, `${found.file}:${found.line}`), " ", copyButton(`${found.file}:${found.line}`)];
  if (!found.lines.length) {
    const gone = empty("The text of the file was not there when this page was written.");
    return section("Source", null, h("p", {}, place), gone);
  }
  const lines = found.lines.map((line, i) => {
    const at = found.first + i;
    return h(`span.row${at === found.line ? ".at" : ""}`, {}, h("i", { "aria-hidden": "true" }, at), `${line}\n`);
  });
  const text = h("pre.source", { tabindex: 0, "aria-label": `Text of ${found.file}` }, lines);
  return section("Source", null, h("p.sub", {}, place), text);
}

function copyButton(text: string): HTMLElement {
  const copy = (event: Event) => {
    void navigator.clipboard?.writeText(text);
    (event.target as HTMLElement).textContent = "copied";
  };
  return h("button.plain", { type: "button", onclick: copy }, "copy file:line");
}

export function rows(page: DatasetPage): HTMLElement {
  const sample = page.table?.sample;
  if (!page.table || !sample)
    return section("Rows", null, empty("It is not stored: a view, a sink, or a table of somebody else."));
  const count = page.table.rows === null ? null : number(page.table.rows);
  if (!sample.rows.length) return section("Rows", count, empty(sample.note || "The table has no rows."));
  const note = h("p.quiet", {}, `${counted(sample.rows.length, "row")}, in no particular order`);
  return section("Rows", count, note, sampleTable("Sample rows", sample));
}

export function versions(page: DatasetPage): HTMLElement {
  if (!page.table) return section("Versions", null, empty("Only stored tables have versions."));
  const lines = page.table.versions.map(([version, at, operation, written]) =>
    h(
      "tr",
      {},
      h("th.num", { scope: "row" }, version),
      h("td", { title: exactly(at) }, when(at)),
      h("td", {}, operation.toLowerCase()),
      numberCell(written),
    ),
  );
  const heads = [...numbers("version"), ...texts("written", "operation"), ...numbers("rows")];
  return section("Versions", page.table.version + 1, table("Versions", heads, lines, { table: "narrow", box: "low" }));
}

export function schema(page: DatasetPage): HTMLElement {
  if (!page.schema.length) return section("Schema changes", 0, empty("No file brought new columns or wider types."));
  const changes = schemaList(page.schema, (change) => link(toUpdate(change.n), when(change.at)));
  return section("Schema changes", page.schema.length, changes);
}
