// One update: when each flow waited and ran, what failed, and what came in.

import { load } from "./data";
import { empty, h, section } from "./dom";
import { between, bytes, compact, counted, duration, exactly, number, percent, ticked, when } from "./format";
import { datasetLink, link, toUpdate } from "./links";
import { checkTable } from "./quality";
import { badge, grade, mark, rate, tone, word } from "./states";
import type { FlowFailure, Overview, Ref, SchemaChange, UpdatePage } from "./types";
import { flowsText } from "./updates";

export async function updateView(overview: Overview, number: number): Promise<HTMLElement> {
  const u = await load<UpdatePage>(`update-${number}`);
  const beside = (n: number, text: string) => (n >= 0 && n < overview.updates ? link(toUpdate(n), text) : h("span.quiet", {}, text));
  return h("div.page.wide", {},
    h("nav.pager", { "aria-label": "Updates beside this one" }, beside(u.n - 1, "← older"), link("#/updates", "all updates"), beside(u.n + 1, "newer →")),
    h("h1", {}, badge(u.state), ` update ${u.short}`),
    h("p.sub", {}, `${u.pipeline} · started ${when(u.start)} · ${u.end === null ? "still running" : `took ${duration(between(u.start, u.end))}`} · ${flowsText(u.flows)}`,
      u.full_refresh.length ? ` · full refresh of ${u.full_refresh.join(", ")}` : "", h("span.id", { title: "id of the update" }, u.id)),
    failures(overview, u), timeline(overview, u), checks(overview, u), rules(overview, u), backlog(overview, u), schema(overview, u), warnings(u));
}

export function failureBox(head: (HTMLElement | string)[], failure: { code: string; text: string }): HTMLElement {
  return h("article.failure", {}, h("h3", {}, mark("FAILED"), ...head, h("code", {}, failure.code)), h("pre", { tabindex: 0 }, failure.text));
}

function failures(overview: Overview, u: UpdatePage): HTMLElement | null {
  if (!u.failures.length && !u.error) return null;
  const flow = (f: FlowFailure) => failureBox([datasetLink(overview, f.d as Ref)], f);
  return section("Failures", u.failures.length + (u.error ? 1 : 0), u.error ? failureBox(["the update "], u.error) : null, u.failures.map(flow));
}

function timeline(overview: Overview, u: UpdatePage): HTMLElement {
  const runs = u.runs, count = runs.d?.length ?? 0;
  if (!count) return section("Timeline", null, empty("No flow was started in this update."));
  const start = u.start ?? 0, end = u.end ?? Math.max(...(runs.end ?? []).map((m) => m ?? 0), ...(runs.start ?? []).map((m) => m ?? 0), Date.now() * Number(overview.live), start + 1);
  const span = Math.max(1, end - start), at = (moment: number) => `${Math.min(100, Math.max(0, ((moment - start) / span) * 100))}%`;
  const all = Array.from({ length: count }, (_, i) => i), ran = all.filter((i) => runs.start?.[i] !== null), still = all.filter((i) => runs.start?.[i] === null);
  const rows = new Map<number, HTMLElement>();
  const light = (i: number | null) => {
    const inputs = new Set(i === null ? [] : runs.waited?.[i] ?? []);
    for (const [k, element] of rows) {
      element.classList.toggle("waited", inputs.has(k));
      element.classList.toggle("on", k === i);
    }
  };
  const draw = (i: number) => {
    const [state, from, to] = [runs.status?.[i] ?? "", runs.start?.[i] ?? null, runs.end?.[i] ?? null];
    const queued = runs.queued?.[i] ?? u.start, last = lastInput(u, i);
    const waited = last === null || from === null ? "" : `waited for ${name(overview, runs.d?.[last] ?? "")}`;
    const facts = [word(state), from === null ? "" : duration(between(from, to ?? end)), runs.rows?.[i] ? counted(runs.rows[i], "row") : "", runs.dropped?.[i] ? `${compact(runs.dropped[i])} dropped` : "", waited, runs.reason?.[i] ?? ""].filter(Boolean);
    const bar = from === null ? [] : [
      queued !== null && from > queued ? h("i.wait", { "--l": at(queued), "--r": at(from) }) : null,
      h(`i.bar.${tone(state)}`, { "--l": at(from), "--r": at(to ?? end) }),
    ];
    const shown = [runs.rows?.[i] ? compact(runs.rows[i]) : "", from === null ? word(state) : duration(between(from, to ?? end))].filter(Boolean).join(" · ");
    const element = h("li", { title: facts.join(" · "), onpointerenter: () => light(i), onpointerleave: () => light(null), onfocusin: () => light(i), onfocusout: () => light(null) },
      h("span.who", {}, mark(state), datasetLink(overview, runs.d?.[i] ?? ""), runs.flow?.[i] ? h("small", {}, runs.flow[i]) : ""),
      h("span.lane", { "aria-hidden": "true" }, bar), h("span.took", {}, shown), h("span.sr", {}, facts.join(", ")),
      h("span.why", {}, [waited, runs.reason?.[i] ? `ran because ${runs.reason[i]}` : ""].filter(Boolean).join(" · ") || ""));
    rows.set(i, element);
    return element;
  };
  const list = h("ol.timeline", {}, ran.map(draw));
  const idle = h("ol.timeline");
  const rest = still.length ? h("details", { ontoggle: () => { if (!idle.childElementCount) idle.append(...still.map(draw)); } }, h("summary", {}, `${counted(still.length, "flow")} that did not start: ${states(u, still)}`), idle) : null;
  const scale = h("div.ticks", { "aria-hidden": "true" }, ticks(span / 1000).map((second) => h("span", { "--l": at(start + second * 1000) }, second ? ticked(second) : "0")));
  return section("Timeline", count, h("p.key", {}, h("span", {}, h("i.wait"), "waits for what it reads, or for a free place"), h("span", {}, h("i.ok"), "runs"), h("span", {}, "point at a flow to see what it waited for")),
    ran.length ? [h("div.frame", {}, scale, list)] : empty("No flow had to run."), rest);
}

/** Round moments, at most six of them. */
function ticks(seconds: number): number[] {
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].find((s) => seconds / s <= 6) ?? seconds / 6;
  return Array.from({ length: Math.floor(seconds / step) + 1 }, (_, i) => i * step);
}

/** Of what a flow reads, the flow that ended last before it began. */
function lastInput(u: UpdatePage, i: number): number | null {
  let found: number | null = null;
  for (const k of u.runs.waited?.[i] ?? []) {
    const end = u.runs.end?.[k] ?? null;
    if (end !== null && u.runs.start?.[k] !== null && (found === null || end > (u.runs.end?.[found] ?? 0))) found = k;
  }
  return found;
}

function states(u: UpdatePage, which: number[]): string {
  const counts: Record<string, number> = {};
  for (const i of which) counts[u.runs.status?.[i] ?? ""] = (counts[u.runs.status?.[i] ?? ""] ?? 0) + 1;
  return flowsText(counts);
}

const name = (overview: Overview, ref: Ref): string => (typeof ref === "string" ? ref : overview.datasets[ref].short);

function rules(overview: Overview, u: UpdatePage): HTMLElement | null {
  if (!u.rules.length) return section("Rules", null, empty("No rule was measured: no flow of this update wrote rows to a dataset with rules."));
  const sorted = [...u.rules].sort((a, b) => (rate(a[2], a[3]) ?? 2) - (rate(b[2], b[3]) ?? 2)), shown = sorted.filter((r) => r[3]);
  const row = ([d, rule, passed, failed]: [Ref, string, number, number]) => h("tr", {}, h("th", { scope: "row" }, h("span.two", {}, datasetLink(overview, d, "rules"), h("code.rule", {}, rule))),
    h("td.num", {}, h(`span.rate.${grade(rate(passed, failed))}`, {}, percent(rate(passed, failed)))), h("td.num", {}, number(failed)), h("td.num", {}, number(passed + failed)));
  const table = (rows: typeof sorted) => h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Rules" }, h("table.data.narrow", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "rule"), ["pass rate", "broken", "of rows"].map((t) => h("th.num", { scope: "col" }, t)))), h("tbody", {}, rows.map(row))));
  const held = sorted.length - shown.length;
  const rest = h("details", { ontoggle: (e: Event) => { const d = e.target as HTMLElement; if (d.childElementCount === 1) d.append(table(sorted.filter((r) => !r[3]))); } }, h("summary", {}, `${counted(held, "rule")} held on every row`));
  return section("Rules", u.rules.length, shown.length ? table(shown) : null, held ? rest : null);
}

function checks(overview: Overview, u: UpdatePage): HTMLElement | null {
  return u.checks.length ? section("Table checks", u.checks.length, checkTable(u.checks, (c) => datasetLink(overview, c.d, "rules"))) : null;
}

function backlog(overview: Overview, u: UpdatePage): HTMLElement | null {
  const found = (u.runs.backlog ?? []).flatMap((b, i) => (b ? [{ b, d: u.runs.d?.[i] ?? "", rows: u.runs.rows?.[i] ?? 0 }] : []));
  if (!found.length) return null;
  const heads = ["files listed", "new files", "waited: files", "bytes", "left: files", "bytes", "rows written"];
  return section("Backlog of sources", found.length, h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Backlog of sources" }, h("table.data.narrow", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "dataset"), heads.map((t) => h("th.num", { scope: "col" }, t)))),
    h("tbody", {}, found.map(({ b, d, rows }) => h("tr", {}, h("th", { scope: "row" }, datasetLink(overview, d)), [b[6], b[5], b[0]].map((n) => h("td.num", {}, number(n))), h("td.num", {}, bytes(b[1])), h("td.num", {}, number(b[3])), h("td.num", {}, bytes(b[4])), h("td.num", {}, number(rows))))))));
}

export function schemaList(changes: SchemaChange[], about: (change: SchemaChange) => HTMLElement | null): HTMLElement {
  const columns = (found: [string, string][], word: string) => (found.length ? [h("span.quiet", {}, `${word} `), found.map(([n, t]) => h("code.column", { title: t }, n, t ? h("span", {}, ` ${t}`) : ""))] : null);
  return h("ul.schema", {}, changes.map((c) => h("li", {}, about(c), columns(c.added, "new"), columns(c.widened, "widened"),
    h("small", { title: exactly(c.at) }, when(c.at), c.file ? [" by ", h("span.code", {}, c.file.replace(/^file:(\/\/)?/, ""))] : ""))));
}

function schema(overview: Overview, u: UpdatePage): HTMLElement | null {
  return u.schema.length ? section("Schema changes", u.schema.length, schemaList(u.schema, (c) => datasetLink(overview, c.d as Ref))) : null;
}

function warnings(u: UpdatePage): HTMLElement | null {
  return u.warnings.length ? section("Warnings", u.warnings.length, h("ul.texts", {}, u.warnings.map((text) => h("li", {}, text)))) : null;
}
