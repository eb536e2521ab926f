// All updates, newest first, a page of them at a time.

import { chart } from "./charts";
import { load } from "./data";
import { css, empty, h, section } from "./dom";
import { ago, between, compact, counted, duration, exactly, number, ticked } from "./format";
import { link, toUpdate } from "./links";
import { badge } from "./states";
import type { Overview, Summary, UpdatesPage } from "./types";

export async function updatesView(overview: Overview, page: number | null): Promise<HTMLElement> {
  const pages = Math.ceil(overview.updates / overview.page);
  if (!pages) return h("div.page", {}, h("h1", {}, "Updates"), empty("No updates yet. Run the first one: ", h("code", {}, "lakelet run")));
  const shown = Math.min(Math.max(page ?? pages - 1, 0), pages - 1);
  const { updates } = await load<UpdatesPage>(`updates-${shown}`);
  const moments = updates.map((u) => u.start);
  const charts = h("div.charts", {},
    figure("Duration", chart(`Duration of ${updates.length} updates`, moments, [{ label: "seconds", values: updates.map((u) => between(u.start, u.end)), colour: css("--accent"), bars: true }], duration, [0, null], ticked)),
    figure("Rows written", chart(`Rows written by ${updates.length} updates`, moments, [{ label: "rows", values: updates.map((u) => u.rows), colour: css("--running"), bars: true }], compact, [0, null])),
    figure("Broken and dropped rows", chart(`Rows that broke rules in ${updates.length} updates`, moments, [
      { label: "broken", values: updates.map((u) => u.broken), colour: css("--warn") }, { label: "dropped", values: updates.map((u) => u.dropped), colour: css("--failed") }], compact, [0, null])));
  return h("div.page.wide", {}, h("h1", {}, "Updates"), charts, section("History", overview.updates, pager(shown, pages), table([...updates].reverse(), overview.pipelines.length > 1), pager(shown, pages)));
}

const figure = (title: string, content: HTMLElement): HTMLElement => h("figure", {}, h("figcaption", {}, title), content);

function pager(shown: number, pages: number): HTMLElement | null {
  if (pages < 2) return null;
  const to = (n: number, text: string) => (n >= 0 && n < pages ? h("a", { href: `#/updates/${n}` }, text) : h("span.quiet", {}, text));
  return h("nav.pager", { "aria-label": "Pages of updates" }, to(shown + 1, "← newer"), h("span", {}, `page ${pages - shown} of ${pages}`), to(shown - 1, "older →"));
}

function table(updates: Summary[], several: boolean): HTMLElement {
  const heads: [string, boolean][] = [["update", false], ["state", false], ["started", false], ["took", true], ["rows", true], ["broken", true], ["dropped", true], ["flows", false]];
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Updates" }, h("table.data", {}, h("thead", {}, h("tr", {}, heads.map(([t, right]) => h(`th${right ? ".num" : ""}`, { scope: "col" }, t)))),
    h("tbody", {}, updates.map((u) => row(u, several)))));
}

export function flowsText(flows: Record<string, number>): string {
  const order = ["FAILED", "SKIPPED", "RUNNING", "COMPLETED", "IDLE", "STOPPED", "EXCLUDED", "QUEUED"];
  return order.filter((state) => flows[state]).map((state) => `${flows[state]} ${state.toLowerCase()}`).join(", ");
}

function row(u: Summary, several: boolean): HTMLElement {
  const notes = [u.schema_changes ? counted(u.schema_changes, "schema change") : "", u.checks_failed ? `${counted(u.checks_failed, "check")} failed` : ""].filter(Boolean).join(", ");
  return h("tr", {},
    h("th", { scope: "row" }, link(toUpdate(u.n), u.short), u.cause === "RETRY_ON_FAILURE" ? h("small", {}, "retry after a failure") : "", several ? h("small", {}, u.pipeline) : ""),
    h("td", {}, badge(u.state), u.first_error ? h("small.error", { title: u.first_error }, u.first_error) : ""),
    h("td", { title: exactly(u.start) }, ago(u.start)),
    h("td.num", {}, duration(between(u.start, u.end))),
    h("td.num", {}, number(u.rows)),
    h("td.num", {}, u.broken ? number(u.broken) : "–"),
    h("td.num", {}, u.dropped ? h("span.lost", {}, number(u.dropped)) : "–"),
    h("td", {}, flowsText(u.flows), notes ? h("small", {}, notes) : ""));
}
