// One dataset: quality over time, rules, rows held back, columns with their lineage, source, sample, versions.

import { type Line, chart, strip } from "./charts";
import { load } from "./data";
import { css, empty, growing, h, section } from "./dom";
import { ago, bytes, compact, counted, duration, exactly, kind, number, percent, when } from "./format";
import { byName, datasetLink, link, toDataset, toUpdate } from "./links";
import { action, checkTable, latest, noRules, rateOf, slotsOf, stripText, trend, trendText } from "./quality";
import { badge, grade } from "./states";
import type { Dataset, DatasetPage, Overview, Ref, Rule, Sample } from "./types";
import { failureBox, schemaList } from "./update";

const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];
const SLOTS = 40;

export async function datasetView(overview: Overview, name: string): Promise<HTMLElement> {
  const position = byName(overview, name);
  if (position < 0) return h("div.page", {}, h("h1", {}, name), empty("No dataset of this name is defined in the newest update. ", link("#/", "All datasets")));
  const d = overview.datasets[position], page = await load<DatasetPage>(`dataset-${position}`);
  const all: [string, string, HTMLElement | null][] = [
    ["quality", "Quality", quality(page)], ["rules", "Rules", rules(page)], ["quarantine", "Quarantine", quarantine(page)], ["runs", "Runs", runs(page)],
    ["columns", "Columns", columns(overview, page)], ["transforms", "Transforms", transforms(page)], ["source", "Source", source(page)], ["rows", "Rows", rows(page)], ["versions", "Versions", versions(page)], ["schema", "Schema changes", schema(page)],
  ];
  const parts = all.filter((part): part is [string, string, HTMLElement] => part[2] !== null);
  for (const [id, , element] of parts) element.dataset.part = id;
  return h("div.page.dataset", {},
    h("nav.crumbs", { "aria-label": "Where this is" }, link("#/", "datasets"), " / ", d.layer && !/^\d+$/.test(d.layer) ? `${d.layer} / ` : ""),
    h("h1", {}, d.short, " ", d.state ? badge(d.state) : ""), h("p.sub", {}, d.name !== d.short ? h("code", {}, d.name) : "", ` ${kind(d.kind)}`, page.flows[0] ? ` · ${page.flows[0][2].toLowerCase()}` : "", page.source ? [" · ", place(page)] : ""),
    page.comment ? h("p.lead", {}, page.comment) : "",
    page.failures.map((f) => failureBox([link(toUpdate(f.n), "the newest update "), f.flow !== d.name ? `flow ${f.flow} ` : ""], f)),
    facts(d, page), neighbours(overview, d, page),
    h("nav.parts", { "aria-label": "Parts of this page" }, parts.map(([id, title]) => link(toDataset(d.name, id), title))),
    parts.map(([, , element]) => element));
}

function place(page: DatasetPage): HTMLElement | string {
  return page.source ? link(toDataset(page.name, "source"), `${page.source.file}:${page.source.line}`) : "";
}

function facts(d: Dataset, page: DatasetPage): HTMLElement {
  const cell = (label: string, value: string, more: string, title = "") => h("div.tile", { title }, h("dt", {}, label), h("dd", {}, h("b", {}, value), h("small", {}, more)));
  return h("dl.tiles", {},
    cell("Rows", number(d.rows), page.table ? `${bytes(page.table.bytes)} in ${counted(page.table.files, "file")}` : "not stored"),
    cell("Last rows", ago(d.rows_at), d.rows_at ? when(d.rows_at) : "no rows were written", exactly(d.rows_at)),
    cell("Pass rate", d.rules ? percent(d.rate) : "–", d.rules ? counted(d.rules, "rule") : "no rules yet"),
    cell("Dropped", number(d.dropped), d.held ? `${number(d.held)} held in quarantine` : "by its newest run"),
    cell("Took", duration(d.seconds), d.reason || "its newest run"));
}

function neighbours(overview: Overview, d: Dataset, page: DatasetPage): HTMLElement {
  const side = (title: string, refs: number[], none: string) => h("div", {}, h("h2", {}, title), refs.length ? h("ul.chips", {}, refs.map((r) => h("li", {}, datasetLink(overview, r)))) : h("p.quiet", {}, none));
  return h("div.neighbours", {}, side("Reads", d.in, "nothing of this pipeline: it takes from outside"), side("Read by", page.readers, "nothing of this pipeline"));
}

function quality(page: DatasetPage): HTMLElement {
  const n = page.runs.n ?? [];
  if (!n.length) return section("Quality over time", null, empty("No rows were written yet: pass rates, dropped and quarantined rows appear with the first run."));
  const moments = page.runs.at ?? [], position = new Map(n.map((update, i) => [update, i]));
  const shown = [...page.rules].filter((r) => r.points.length).sort((a, b) => lowest(a) - lowest(b)).slice(0, COLOURS.length);
  const lines = shown.map((r, k): Line => {
    const values: (number | null)[] = n.map(() => null);
    for (const point of r.points) { const i = position.get(point[0]); if (i !== undefined) values[i] = rateOf(point); }
    return { label: r.name, values, colour: css(COLOURS[k]) };
  });
  const lost: Line[] = [{ label: "dropped", values: page.runs.dropped ?? [], colour: css("--failed"), bars: true }];
  if ((page.runs.quarantined ?? []).some(Boolean)) lost.push({ label: "quarantined", values: page.runs.quarantined ?? [], colour: css("--warn") });
  const figure = (title: string, content: HTMLElement) => h("figure", {}, h("figcaption", {}, title), content);
  const more = page.rules.length - shown.length;
  return section("Quality over time", null, h("div.charts", {},
    lines.length ? figure(more > 0 && page.rules.length > shown.length ? `Pass rate: the ${shown.length} rules that were broken most` : "Pass rate", chart(`Pass rates of ${lines.map((l) => l.label).join(", ")}`, moments, lines, percent, [null, 1])) : null,
    figure("Rows written", chart("Rows written by each run", moments, [{ label: "rows", values: page.runs.rows ?? [], colour: css("--accent"), bars: true }], compact, [0, null])),
    page.rules.length ? figure("Rows dropped and held back", chart("Rows dropped and held back by each run", moments, lost, compact, [0, null])) : null));
}

const lowest = (rule: Rule): number => Math.min(...rule.points.slice(-SLOTS).map((p) => rateOf(p) ?? 1), 1);

function rules(page: DatasetPage): HTMLElement {
  if (!page.rules.length && !page.checks.length) return section("Rules", 0, noRules());
  const slots = slotsOf(page.rules);
  const row = (r: Rule) => {
    const now = latest(r.points), share = rateOf(now), notes = [r.description, r.owner && `owner ${r.owner}`, ...(r.tags ?? [])].filter(Boolean).join(" · ");
    return h("tr", {}, h("th", { scope: "row" }, h("code.rule", {}, r.name), h("small.code", {}, r.constraint), notes ? h("small", {}, notes) : ""),
      h("td", {}, action(r.action)), h("td.num", {}, h(`span.rate.${grade(share)}`, {}, percent(share))), h("td.num", {}, trendText(trend(r.points))),
      h("td.num", {}, now ? number(now[2]) : "–"), h("td.num", {}, now ? number(now[1] + now[2]) : "–"),
      h("td", {}, r.points.length ? strip(r.points, slots, stripText(r.points)) : h("span.quiet", {}, "not measured yet")));
  };
  const heads = ["pass rate", "change", "broken", "of rows"];
  const table = page.rules.length ? h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Rules" }, h("table.data.rules", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "rule"), h("th", { scope: "col" }, "action"), heads.map((t) => h("th.num", { scope: "col" }, t)), h("th", { scope: "col" }, "last updates"))), h("tbody", {}, page.rules.map(row)))) : null;
  return section("Rules", page.rules.length + page.checks.length, table, page.checks.length ? [h("h3", {}, "Checks of the whole table"), checkTable(page.checks)] : null);
}

function quarantine(page: DatasetPage): HTMLElement {
  const found = page.table?.quarantine;
  if (!found) return section("Quarantine", null, empty(page.rules.some((r) => r.action === "drop") ? ["Dropped rows of this dataset are not kept. Its table property ", h("code", {}, "lakelet.quarantine = true"), " keeps them, with the rules that each one broke."] : "No quarantine: no rule of this dataset drops rows."));
  const reasons = found.columns.indexOf("_broken_rules"), own = ["_broken_rules", "_quarantined_at", "_update_id", "_flow_name", "_source_file", "_released_by"];
  const first = own.filter((c) => found.columns.includes(c) && c !== "_flow_name"), order = [...first, ...found.columns.filter((c) => !own.includes(c))].map((c) => found.columns.indexOf(c));
  const cell = (value: string | null, i: number) => (i === reasons && value ? list(value).map((rule) => h("code.reason", {}, rule)) : null);
  return section("Quarantine", found.held, found.rows.length ? sampleTable("Rows held back", found, order, cell) : empty(found.note || "No row is held back."));
}

function list(text: string): string[] {
  try { const found: unknown = JSON.parse(text); return Array.isArray(found) ? found.map(String) : [text]; } catch { return [text]; }
}

function sampleTable(label: string, sample: Sample, order = sample.columns.map((_, i) => i), special?: (value: string | null, column: number) => (HTMLElement[] | null)): HTMLElement {
  const cell = (row: (string | null)[], i: number) => h("td", {}, special?.(row[i], i) ?? (row[i] === null ? h("span.null", {}, "NULL") : h("span.cell", { title: row[i] }, row[i])));
  return h("div.scroll.rows", { tabindex: 0, role: "region", "aria-label": label }, h("table.data.sample", {}, h("thead", {}, h("tr", {}, order.map((i) => h("th", { scope: "col" }, sample.columns[i])))), h("tbody", {}, sample.rows.map((row) => h("tr", {}, order.map((i) => cell(row, i)))))));
}

function runs(page: DatasetPage): HTMLElement {
  const r = page.runs, all = (r.n ?? []).map((_, i) => i).reverse();
  const note = page.idle ? h("p.quiet", {}, `${counted(page.idle, "more update")} had nothing new for it.`) : null;
  if (!all.length) return section("Runs", 0, empty("It has not run in the updates on this page."), note);
  const body = h("tbody");
  growing(all, (i) => h("tr", {}, h("th", { scope: "row", title: exactly(r.at?.[i]) }, link(toUpdate(r.n?.[i] ?? 0), when(r.at?.[i]))), h("td", {}, badge(r.state?.[i] ?? "")), h("td.num", {}, number(r.rows?.[i])), h("td.num", {}, r.deleted?.[i] ? number(r.deleted[i]) : "–"),
    h("td.num", {}, r.dropped?.[i] ? h("span.lost", {}, number(r.dropped[i])) : "–"), h("td.num", {}, r.quarantined?.[i] ? number(r.quarantined[i]) : "–"), h("td.num", {}, duration(r.seconds?.[i]))), body, 12);
  const heads = ["rows", "deleted", "dropped", "quarantined", "took"];
  return section("Runs", all.length, h("div.scroll.low", { tabindex: 0, role: "region", "aria-label": "Runs" }, h("table.data.narrow", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "started"), h("th", { scope: "col" }, "state"), heads.map((t) => h("th.num", { scope: "col" }, t)))), body)), note);
}

function columns(overview: Overview, page: DatasetPage): HTMLElement {
  if (!page.columns.length) return section("Columns", 0, empty("Its columns are known after its first run."));
  const refs = (found: [Ref, string][]) => (found.length ? h("ul.refs", {}, found.map(([d, c]) => h("li", {}, datasetLink(overview, d, "columns"), h("code", {}, `.${c}`)))) : h("span.quiet", {}, "–"));
  const body = h("tbody"), lineage = page.lineage || page.columns.some(([, , , below]) => below.length);
  growing(page.columns, ([name, type, above, below]) => h("tr", {}, h("th", { scope: "row" }, h("code.rule", {}, name)), h("td", {}, h("span.type", { title: type }, type)), lineage ? [h("td", {}, refs(above)), h("td", {}, refs(below))] : null), body);
  const heads = lineage ? ["column", "type", "computed from", "used by"] : ["column", "type"];
  const note = lineage ? null : h("p.quiet", {}, "The event log of this storage has no lineage of columns.");
  return section("Columns", page.columns.length, h("div.scroll.low", { tabindex: 0, role: "region", "aria-label": "Columns" }, h("table.data", {}, h("thead", {}, h("tr", {}, heads.map((t) => h("th", { scope: "col" }, t)))), body)), note);
}

function transforms(page: DatasetPage): HTMLElement | null {
  if (!page.transforms.length) return null;
  return section("Transforms", page.transforms.length, h("p.quiet", {}, "The calls of ", h("code", {}, "lakelet.transforms"), " that its query is made of, in order; keys and secrets are left out."),
    h("ol.calls", {}, page.transforms.map((call) => h("li", {}, h("code", {}, call)))));
}

function source(page: DatasetPage): HTMLElement {
  const s = page.source;
  if (!s) return section("Source", null, empty("The event log does not say which file defines it."));
  const name = `${s.file}:${s.line}`;
  const copy = h("button.plain", { type: "button", onclick: (e: Event) => { void navigator.clipboard?.writeText(name); (e.target as HTMLElement).textContent = "copied"; } }, "copy file:line");
  if (!s.lines.length) return section("Source", null, h("p", {}, h("code", {}, name), " ", copy), empty("The text of the file was not there when this page was written."));
  return section("Source", null, h("p.sub", {}, h("code", {}, name), " ", copy),
    h("pre.source", { tabindex: 0, "aria-label": `Text of ${s.file}` }, s.lines.map((line, i) => h(`span.row${s.first + i === s.line ? ".at" : ""}`, {}, h("i", { "aria-hidden": "true" }, s.first + i), `${line}\n`))));
}

function rows(page: DatasetPage): HTMLElement {
  const sample = page.table?.sample;
  if (!page.table || !sample) return section("Rows", null, empty("It is not stored: a view, a sink, or a table of somebody else."));
  return section("Rows", page.table.rows === null ? null : number(page.table.rows), sample.rows.length ? [h("p.quiet", {}, `${counted(sample.rows.length, "row")}, in no particular order`), sampleTable("Sample rows", sample)] : empty(sample.note || "The table has no rows."));
}

function versions(page: DatasetPage): HTMLElement {
  if (!page.table) return section("Versions", null, empty("Only stored tables have versions."));
  const line = ([n, at, operation, written]: [number, number | null, string, number | null]) => h("tr", {}, h("th.num", { scope: "row" }, n), h("td", { title: exactly(at) }, when(at)), h("td", {}, operation.toLowerCase()), h("td.num", {}, number(written)));
  return section("Versions", page.table.version + 1, h("div.scroll.low", { tabindex: 0, role: "region", "aria-label": "Versions" }, h("table.data.narrow", {}, h("thead", {}, h("tr", {}, h("th.num", { scope: "col" }, "version"), h("th", { scope: "col" }, "written"), h("th", { scope: "col" }, "operation"), h("th.num", { scope: "col" }, "rows"))), h("tbody", {}, page.table.versions.map(line)))));
}

function schema(page: DatasetPage): HTMLElement {
  return section("Schema changes", page.schema.length, page.schema.length ? schemaList(page.schema, (c) => link(toUpdate(c.n), when(c.at))) : empty("No file brought new columns or wider types."));
}
