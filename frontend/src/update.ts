// One update: when each flow waited and ran, what failed, and what came in.

import { load } from "./data";
import { empty, folded, h, section } from "./dom";
import { between, bytes, counted, duration, exactly, number, when } from "./format";
import { datasetLink, link, toUpdate, updateNumber } from "./links";
import { checkTable } from "./quality";
import { badge, flowsText, foundText, mark, rate } from "./states";
import { numberCell, numbers, rateCell, rowHead, table, texts } from "./tables";
import { timeline } from "./timeline";
import type { Overview, Ref, SchemaChange, UpdatePage } from "./types";

/** `address`: the beginning of the id of an update, or its number in this report. */
export async function updateView(overview: Overview, address: string): Promise<HTMLElement> {
  const number = updateNumber(overview, address);
  if (number === null) return noUpdate();
  const u = await load<UpdatePage>(`update-${number}`);
  const took = u.end === null ? "still running" : `took ${duration(between(u.start, u.end))}`;
  const refreshed = u.full_refresh.length ? ` · full refresh of ${u.full_refresh.join(", ")}` : "";
  return h(
    "div.page.wide",
    {},
    neighbours(overview, u.n),
    h("h1", {}, badge(u.state), ` update ${u.short}`),
    h("p.sum", {}, `This update: ${foundText(u)}.`),
    h(
      "p.sub",
      {},
      `${u.pipeline} · started ${when(u.start)} · ${took} · ${flowsText(u.flows)}`,
      refreshed,
      h("span.id", { title: "id of the update" }, u.id),
    ),
    failures(overview, u),
    timeline(overview, u),
    checks(overview, u),
    rules(overview, u),
    backlog(overview, u),
    schema(overview, u),
    warnings(u),
  );
}

function noUpdate(): HTMLElement {
  const missing = empty("There is no update at this address. ", link("#/updates", "All updates"));
  return h("div.page", {}, h("h1", {}, "No such update"), missing);
}

function neighbours(overview: Overview, n: number): HTMLElement {
  const to = (other: number, text: string) =>
    other >= 0 && other < overview.updates ? link(toUpdate(other), text) : h("span.quiet", {}, text);
  const label = "Updates beside this one";
  return h(
    "nav.pager",
    { "aria-label": label },
    to(n - 1, "← older"),
    link("#/updates", "all updates"),
    to(n + 1, "newer →"),
  );
}

/** An error: its first sentence; all of it behind a click. */
export function failureBox(
  head: (HTMLElement | string)[],
  failure: { code: string; sentence: string; text: string },
): HTMLElement {
  return h(
    "article.failure",
    {},
    h("h3", {}, mark("FAILED"), ...head, h("code", {}, failure.code)),
    h("p.sentence", {}, failure.sentence),
    folded("The whole error", () => [h("pre", { tabindex: 0 }, failure.text)]),
  );
}

function failures(overview: Overview, u: UpdatePage): HTMLElement | null {
  if (!u.failures.length && !u.error) return null;
  return section(
    "Failures",
    u.failures.length + (u.error ? 1 : 0),
    u.error ? failureBox(["the update "], u.error) : null,
    u.failures.map((f) => failureBox([datasetLink(overview, f.d as Ref)], f)),
  );
}

function rules(overview: Overview, u: UpdatePage): HTMLElement | null {
  if (!u.rules.length)
    return section(
      "Rules",
      null,
      empty("No rule was measured: no flow of this update wrote rows to a dataset with rules."),
    );
  const stopped = new Set(u.unwritten.filter(([, , , stops]) => stops).map(([d, rule]) => `${d} ${rule}`));
  const worst = ([d, rule, passed, failed]: UpdatePage["rules"][number]) =>
    (rate(passed, failed) ?? 2) - (stopped.has(`${d} ${rule}`) ? 2 : 0);
  const sorted = [...u.rules].sort((a, b) => worst(a) - worst(b));
  const broken = sorted.filter(([, , , failed]) => failed);
  const held = sorted.filter(([, , , failed]) => !failed);
  const unwritten = new Map(u.unwritten.map(([d, rule, failed]) => [`${d} ${rule}`, failed]));
  const brokenCell = (d: Ref, rule: string, failed: number) => {
    const lost = unwritten.get(`${d} ${rule}`);
    if (!lost) return numberCell(failed);
    return numberCell(h("span", {}, number(failed), h("small", {}, `${number(lost)} in a batch that was not written`)));
  };
  const drawn = (found: typeof sorted) =>
    table(
      "Rules",
      [...texts("rule"), ...numbers("pass rate", "rows that broke it", "of rows")],
      found.map(([d, rule, passed, failed]) =>
        h(
          stopped.has(`${d} ${rule}`) ? "tr.stopped" : "tr",
          {},
          rowHead(
            h("span.two", {}, datasetLink(overview, d, "rules"), h("code.rule", {}, rule)),
            stopped.has(`${d} ${rule}`) ? h("small.stops", {}, "stopped its flow") : null,
          ),
          rateCell(rate(passed, failed)),
          brokenCell(d, rule, failed),
          numberCell(passed + failed),
        ),
      ),
      { table: "narrow" },
    );
  return section(
    "Rules",
    u.rules.length,
    broken.length ? drawn(broken) : null,
    held.length ? folded(`${counted(held.length, "rule")} held on every row`, () => [drawn(held)]) : null,
  );
}

function checks(overview: Overview, u: UpdatePage): HTMLElement | null {
  if (!u.checks.length) return null;
  const found = checkTable(u.checks, (c) => datasetLink(overview, c.d, "rules"));
  return section("Table checks", u.checks.length, found);
}

function backlog(overview: Overview, u: UpdatePage): HTMLElement | null {
  const rows = (u.runs.backlog ?? []).flatMap((sizes, i) => {
    if (!sizes) return [];
    const [waitedFiles, waitedBytes, , leftFiles, leftBytes, fresh, listed] = sizes;
    return [
      h(
        "tr",
        {},
        rowHead(datasetLink(overview, u.runs.d?.[i] ?? "")),
        [listed, fresh, waitedFiles].map(numberCell),
        numberCell(bytes(waitedBytes)),
        numberCell(leftFiles),
        numberCell(bytes(leftBytes)),
        numberCell(u.runs.rows?.[i] ?? 0),
      ),
    ];
  });
  if (!rows.length) return null;
  const heads = numbers("files listed", "new files", "waited: files", "bytes", "left: files", "bytes", "rows written");
  const drawn = table("Backlog of sources", [...texts("dataset"), ...heads], rows, { table: "narrow" });
  return section("Backlog of sources", rows.length, drawn);
}

export function schemaList(changes: SchemaChange[], about: (change: SchemaChange) => HTMLElement | null): HTMLElement {
  const columns = (found: [string, string][], word: string) => {
    if (!found.length) return null;
    const shown = found.map(([name, type]) =>
      h("code.column", { title: type }, name, type ? h("span", {}, ` ${type}`) : ""),
    );
    return [h("span.quiet", {}, `${word} `), shown];
  };
  const line = (c: SchemaChange) => {
    const file = c.file ? [" by ", h("span.code", {}, c.file.replace(/^file:(\/\/)?/, ""))] : "";
    const moment = h("small", { title: exactly(c.at) }, when(c.at), file);
    return h("li", {}, about(c), columns(c.added, "new"), columns(c.widened, "widened"), moment);
  };
  return h("ul.schema", {}, changes.map(line));
}

function schema(overview: Overview, u: UpdatePage): HTMLElement | null {
  if (!u.schema.length) return null;
  const found = schemaList(u.schema, (c) => datasetLink(overview, c.d as Ref));
  return section("Schema changes", u.schema.length, found);
}

function warnings(u: UpdatePage): HTMLElement | null {
  if (!u.warnings.length) return null;
  const lines = u.warnings.map((text) => h("li", {}, text));
  return section("Warnings", u.warnings.length, h("ul.texts", {}, lines));
}
