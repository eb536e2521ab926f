// All updates, newest first, a page of them at a time.

import { chart, figure, type Line } from "./charts";
import { load } from "./data";
import { css, empty, h, section } from "./dom";
import { ago, between, compact, counted, duration, exactly, ticked } from "./format";
import { firstError, link, toUpdate } from "./links";
import { badge, flowsText } from "./states";
import { lostCell, numberCell, numbers, rowHead, someCell, table, texts } from "./tables";
import type { Overview, Summary, UpdatesPage } from "./types";

export async function updatesView(overview: Overview, page: number | null): Promise<HTMLElement> {
  const pages = Math.ceil(overview.updates / overview.page);
  if (!pages) {
    const first = empty("No updates yet. Run the first one: ", h("code", {}, "lakelet run"));
    return h("div.page", {}, h("h1", {}, "Updates"), first);
  }
  const wanted = page !== null && Number.isInteger(page) ? page : pages - 1;
  const shown = Math.min(Math.max(wanted, 0), pages - 1);
  const { updates } = await load<UpdatesPage>(`updates-${shown}`);
  const several = overview.pipelines.length > 1;
  const history = table(
    "Updates",
    [
      ...texts("update", "state", "started"),
      ...numbers("took", "rows written", "violations", "rows dropped"),
      ...texts("flows"),
    ],
    [...updates].reverse().map((u) => row(overview, u, several)),
  );
  return h(
    "div.page.wide",
    {},
    h("h1", {}, "Updates"),
    charts(updates),
    section("History", overview.updates, pager(shown, pages), history, pager(shown, pages)),
  );
}

function charts(updates: Summary[]): HTMLElement {
  const moments = updates.map((u) => u.start);
  const seconds: Line = {
    label: "seconds",
    values: updates.map((u) => between(u.start, u.end)),
    colour: css("--accent"),
    bars: true,
  };
  const rows: Line = { label: "rows", values: updates.map((u) => u.rows), colour: css("--running"), bars: true };
  const found: Line = {
    label: "violations",
    values: updates.map((u) => u.violations),
    colour: css("--warn"),
    bars: true,
  };
  const lost: Line = {
    label: "rows dropped",
    values: updates.map((u) => u.dropped),
    colour: css("--failed"),
    bars: true,
  };
  const [all, from] = [counted(updates.length, "update"), [0, null] as [number, null]];
  return h(
    "div.charts",
    {},
    figure("Duration", chart(`Duration of ${all}`, moments, [seconds], duration, from, ticked)),
    figure("Rows written", chart(`Rows written by ${all}`, moments, [rows], compact, from)),
    figure("Violations of rules", chart(`Violations of rules in ${all}`, moments, [found], compact, from)),
    figure("Rows dropped", chart(`Rows dropped by ${all}`, moments, [lost], compact, from)),
  );
}

function pager(shown: number, pages: number): HTMLElement | null {
  if (pages < 2) return null;
  const to = (n: number, text: string) =>
    n >= 0 && n < pages ? link(`#/updates/${n}`, text) : h("span.quiet", {}, text);
  const here = h("span", {}, `page ${pages - shown} of ${pages}`);
  return h("nav.pager", { "aria-label": "Pages of updates" }, to(shown + 1, "← newer"), here, to(shown - 1, "older →"));
}

function row(overview: Overview, u: Summary, several: boolean): HTMLElement {
  const notes = [
    u.schema_changes ? counted(u.schema_changes, "schema change") : "",
    u.check_counts[0] ? `${counted(u.check_counts[0], "check")} failed` : "",
  ];
  const noted = notes.filter(Boolean).join(", ");
  const retried = u.cause === "RETRY_ON_FAILURE" ? h("small", {}, "retry after a failure") : "";
  return h(
    "tr",
    {},
    rowHead(link(toUpdate(u.n), u.short), retried, several ? h("small", {}, u.pipeline) : ""),
    h("td", {}, badge(u.state), u.first_error ? h("small.error", {}, firstError(overview, u)) : ""),
    h("td", { title: exactly(u.start) }, ago(u.start)),
    numberCell(duration(between(u.start, u.end))),
    numberCell(u.rows),
    someCell(u.violations),
    lostCell(u.dropped),
    h("td", {}, flowsText(u.flows), noted ? h("small", {}, noted) : ""),
  );
}
