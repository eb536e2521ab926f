// One dataset: what it is and where it stands; its parts are drawn in dataset_quality.ts and dataset_table.ts.

import { badInput } from "./bad_input";
import { load } from "./data";
import { empty, h, tile } from "./dom";
import { quality, quarantine, rules } from "./dataset_quality";
import { columns, rows, runs, schema, source, transforms, versions } from "./dataset_table";
import { ago, bytes, counted, duration, exactly, kind, number, percent, when } from "./format";
import { byName, datasetLink, link, shortOf, toDataset, toUpdate } from "./links";
import { ownerLine } from "./owners";
import { sinceLine } from "./quality";
import { badge } from "./states";
import type { Dataset, DatasetPage, Overview } from "./types";
import { failureBox } from "./update";

/** Part of the page by its name in addresses, its title, its content; null where this dataset has none. */
type Part = [string, string, HTMLElement | null];

export async function datasetView(overview: Overview, name: string): Promise<HTMLElement> {
  const position = byName(overview, name);
  if (position < 0) {
    const missing = empty("No dataset of this name is defined in the newest update. ", link("#/", "All datasets"));
    return h("div.page", {}, h("h1", {}, name), missing);
  }
  const d = overview.datasets[position];
  const page = await load<DatasetPage>(`dataset-${position}`);
  const all: Part[] = [
    ["quality", "Quality", quality(page)],
    ["rules", "Rules", rules(page)],
    ["quarantine", "Quarantine", quarantine(page)],
    ["bad-input", "Bad input", badInput(page)],
    ["runs", "Runs", runs(page)],
    ["columns", "Columns", columns(overview, page)],
    ["transforms", "Transforms", transforms(page)],
    ["source", "Source", source(page)],
    ["rows", "Rows", rows(page)],
    ["versions", "Versions", versions(page)],
    ["schema", "Schema changes", schema(page)],
  ];
  const parts = all.filter((part): part is [string, string, HTMLElement] => part[2] !== null);
  for (const [id, , element] of parts) element.dataset.part = id;
  const contents = parts.map(([id, title]) => link(toDataset(d.name, id), title));
  return h(
    "div.page.dataset",
    {},
    heading(d, page),
    d.about ? h("p.lead", {}, d.about) : "",
    failures(d, page),
    facts(overview, d, page),
    neighbours(overview, d, page),
    h("nav.parts", { "aria-label": "Parts of this page" }, contents),
    parts.map(([, , element]) => element),
  );
}

function heading(d: Dataset, page: DatasetPage): HTMLElement[] {
  const layer = d.layer && !/^\d+$/.test(d.layer) ? `${d.layer} / ` : "";
  const flow = page.flows[0] ? ` · ${page.flows[0][2].toLowerCase()}` : "";
  const place = page.source
    ? [" · ", link(toDataset(page.name, "source"), `${page.source.file}:${page.source.line}`)]
    : "";
  return [
    h("nav.crumbs", { "aria-label": "Where this is" }, link("#/", "datasets"), " / ", layer),
    h("h1", {}, d.short, " ", d.state ? badge(d.state) : ""),
    d.failing ? h("p.sub", {}, sinceLine(d.failing)) : h("span"),
    h("p.sub", {}, d.name !== d.short ? h("code", {}, d.name) : "", ` ${kind(d.kind)}`, flow, place),
    d.owner || d.tags.length
      ? h("p.sub.whose", {}, ownerLine({ owner: d.owner, tags: d.tags }))
      : h("p.sub.whose", {}, noOwner()),
  ];
}

const noOwner = (): HTMLElement =>
  h("small.about", {}, "no owner: its table property ", h("code", {}, "lakelet.owner"), " names one");

function failures(d: Dataset, page: DatasetPage): HTMLElement[] {
  return page.failures.map((f) =>
    failureBox([link(toUpdate(f.n), "the newest update "), f.flow !== d.name ? `flow ${f.flow} ` : ""], f),
  );
}

const measuredText = (overview: Overview, d: Dataset): string =>
  d.measured === null
    ? "no rule was measured yet"
    : `of ${counted(d.broken_rules, "rule")}, update ${shortOf(overview, d.measured)}`;

const passText = (overview: Overview, d: Dataset): string =>
  !d.rules ? "no rules yet" : d.measured === null ? "not measured yet" : `by update ${shortOf(overview, d.measured)}`;

function facts(overview: Overview, d: Dataset, page: DatasetPage): HTMLElement {
  const stored = page.table ? `${bytes(page.table.bytes)} in ${counted(page.table.files, "file")}` : "not stored";
  const wrote = d.rows_at ? when(d.rows_at) : "no rows were written";
  return h(
    "dl.tiles",
    {},
    tile("Rows", number(d.rows), stored),
    tile("Last rows", ago(d.rows_at), wrote, { title: exactly(d.rows_at) }),
    tile("Pass rate", d.rules ? percent(d.rate) : "–", passText(overview, d)),
    tile("Violations", d.measured === null ? "–" : number(d.violations), measuredText(overview, d)),
    tile("Rows dropped", number(d.dropped), "by its newest run"),
    d.held !== null ? tile("Rows in quarantine now", number(d.held), "of every update") : null,
    tile("Took", duration(d.seconds), d.reason || "its newest run"),
  );
}

function neighbours(overview: Overview, d: Dataset, page: DatasetPage): HTMLElement {
  const side = (title: string, refs: number[], none: string) => {
    const chips = refs.map((r) => h("li", {}, datasetLink(overview, r)));
    return h("div", {}, h("h2", {}, title), refs.length ? h("ul.chips", {}, chips) : h("p.quiet", {}, none));
  };
  return h(
    "div.neighbours",
    {},
    side("Reads", d.in, "nothing of this pipeline: it takes from outside"),
    side("Read by", page.readers, "nothing of this pipeline"),
  );
}
