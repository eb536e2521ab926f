// The first view: how the newest update went, what it changed, and the datasets.

import { datasets } from "./datasets";
import { empty, growing, h, section, tile } from "./dom";
import { affected, freshness } from "./freshness";
import { ago, between, compact, counted, duration, exactly, when } from "./format";
import { byName, firstError, link, toDataset, toUpdate } from "./links";
import { badge, foundText, tone, word } from "./states";
import type { Dataset, Overview, Summary } from "./types";

/** Changes that are shown before a click. */
const MOST_CHANGES = 6;
const THIS = "by this update";
/** What screen readers hear of a change's colour. */
const MOODS: Record<string, string> = { bad: "failure", warning: "warning", good: "improvement", neutral: "note" };

export function overviewView(overview: Overview): HTMLElement {
  const latest = overview.recent[overview.recent.length - 1];
  if (!latest) {
    const about = "This page shows the updates of a pipeline, its datasets and the quality of their rows.";
    const first = empty(`${about} Run the first one: `, h("code", {}, "lakelet run"));
    return h("div.page", {}, h("h1", {}, "No updates yet"), first);
  }
  return h(
    "div.page.wide",
    {},
    headline(overview, latest),
    changes(overview),
    affected(overview),
    datasets(overview),
    freshness(overview),
  );
}

function headline(overview: Overview, latest: Summary): HTMLElement {
  const moment =
    latest.end === null
      ? `running since ${when(latest.start)}`
      : `${ago(latest.end)}, took ${duration(between(latest.start, latest.end))}`;
  const error = latest.first_error ? h("span.error", {}, firstError(overview, latest)) : "";
  const title = [badge(latest.state), " ", link(toUpdate(latest.n), `update ${latest.short}`)];
  return h(
    "header.headline",
    {},
    h(
      "div",
      {},
      h("p.over", {}, overview.pipelines.join(", ") || "pipeline"),
      h("h1", {}, h("span.sr", {}, "Newest update: "), title),
      h("p.sub", { title: exactly(latest.start) }, moment, error),
      h("p.sum", {}, `This update: ${foundText(latest)}.`),
      strip(overview),
    ),
    h("dl.tiles", {}, tiles(overview.datasets, latest)),
  );
}

function tiles(all: Dataset[], latest: Summary): (HTMLElement | null)[] {
  const done = all.filter((d) => d.state === "COMPLETED" || d.state === "IDLE").length;
  const stored = all.filter((d) => d.state).length;
  const held = sum(all, (d) => d.held ?? 0);
  return [
    tile("Datasets up to date now", `${done} of ${stored}`, counted(all.length, "dataset")),
    tile("Rows written", compact(latest.rows), THIS),
    violationsTile(latest),
    tile("Rows dropped", compact(latest.dropped), THIS, { mood: latest.dropped ? "warn" : "" }),
    checksTile(all, latest),
    held ? tile("Rows in quarantine now", compact(held), "of every update") : null,
  ];
}

/** Violations are counted by rule: a row that breaks two rules makes two. */
function violationsTile(latest: Summary): HTMLElement {
  if (!latest.measured_rules) return tile("Violations", "–", "no rule was measured by this update");
  const remark = latest.broken_rules
    ? `of ${counted(latest.broken_rules, "rule")}, ${THIS}`
    : `${latest.measured_rules === 1 ? "the rule is" : `all ${latest.measured_rules} rules are`} met, ${THIS}`;
  const title = "One for each rule that a row breaks";
  return tile("Violations", compact(latest.violations), remark, { mood: latest.broken_rules ? "warn" : "", title });
}

function checksTile(all: Dataset[], latest: Summary): HTMLElement | null {
  const known = sum(all, (d) => d.checks[2]);
  if (!known) return null;
  const [failed, left, checks] = latest.check_counts;
  const before = sum(all, (d) => d.checks[0]);
  if (!checks) {
    const remark = before ? `no table changed; ${before} failed before` : "no table changed since they were made";
    return tile("Table checks", "none made", remark, { mood: before ? "bad" : "" });
  }
  const value = failed ? `${failed} failed` : left === checks ? "not run" : left ? `${checks - left} pass` : "all pass";
  const remark = `${counted(checks, "check")}${left && left < checks ? `, ${left} not run` : ""}, ${THIS}`;
  return tile("Table checks", value, remark, { mood: failed ? "bad" : left ? "warn" : "" });
}

const sum = (all: Dataset[], of: (dataset: Dataset) => number): number => all.reduce((n, d) => n + of(d), 0);

/** The newest updates as bars: height by duration, colour by state. */
function strip(overview: Overview): HTMLElement {
  const longest = Math.max(...overview.recent.map((u) => between(u.start, u.end) ?? 0), 1);
  const bar = (u: Summary) => {
    const seconds = between(u.start, u.end);
    const said = `update ${u.short}, ${word(u.state)}, ${when(u.start)}, ${duration(seconds)}`;
    const height = `${4 + 24 * Math.sqrt((seconds ?? longest) / longest)}px`;
    return h(`a.bar.${tone(u.state)}`, { href: toUpdate(u.n), title: said, "aria-label": said, "--h": height });
  };
  return h("nav.strip", { "aria-label": "Newest updates" }, overview.recent.map(bar));
}

function changes(overview: Overview): HTMLElement {
  const found = overview.changes;
  const draw = (change: Overview["changes"][number]) => changeLine(overview, change);
  const list = h("ul.changes", {}, found.slice(0, MOST_CHANGES).map(draw));
  const more = (event: Event) => {
    (event.target as HTMLElement).remove();
    growing(found.slice(MOST_CHANGES), draw, list);
  };
  const left = found.length - MOST_CHANGES;
  const rest =
    left > 0 ? h("button.plain", { type: "button", onclick: more }, `Show ${counted(left, "more change")}`) : null;
  const first = overview.updates <= 1;
  const none = first
    ? "Nothing to report: this is the first update, and every rule holds."
    : "Nothing changed: the same states, pass rates, columns and rules as in the update before.";
  return section(
    first ? "Found by the first update" : "Since the last update",
    found.length || null,
    found.length ? [list, rest] : empty(none),
  );
}

function changeLine(overview: Overview, [mood, about, rule, text]: Overview["changes"][number]): HTMLElement {
  const name = overview.datasets[byName(overview, about)]?.short ?? about;
  return h(
    `li.${mood}`,
    {},
    h("span.dot", {}, h("span.sr", {}, MOODS[mood] ?? MOODS.neutral)),
    h("p", {}, about ? [link(toDataset(about), name), " "] : "", rule ? [h("code", {}, rule), " "] : "", text),
  );
}
