// The timeline of an update: when each flow waited and ran, and what it waited for.

import { type Child, empty, folded, h, section } from "./dom";
import { between, compact, counted, duration, ticked } from "./format";
import { datasetLink } from "./links";
import { flowsText, mark, tone, word } from "./states";
import type { Overview, Ref, UpdatePage } from "./types";

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

export function timeline(overview: Overview, update: UpdatePage): HTMLElement {
  const runs = update.runs;
  const count = runs.d?.length ?? 0;
  if (!count) return section("Timeline", null, empty("No flow was started in this update."));
  const start = update.start ?? 0;
  const end = update.end ?? newest([...(runs.end ?? []), ...(runs.start ?? [])], overview.live, start + 1);
  const span = Math.max(1, end - start);
  const at = (moment: number) => `${Math.min(100, Math.max(0, ((moment - start) / span) * 100))}%`;

  const drawn = new Map<number, HTMLElement>();
  const light = (pointed: number | null) => {
    const inputs = new Set(pointed === null ? [] : (runs.waited?.[pointed] ?? []));
    for (const [i, element] of drawn) {
      element.classList.toggle("waited", inputs.has(i));
      element.classList.toggle("on", i === pointed);
    }
  };
  const draw = (i: number) => {
    const element = flowLine(overview, update, i, end, at);
    for (const event of ["pointerenter", "focusin"]) element.addEventListener(event, () => light(i));
    for (const event of ["pointerleave", "focusout"]) element.addEventListener(event, () => light(null));
    drawn.set(i, element);
    return element;
  };

  const all = Array.from({ length: count }, (_, i) => i);
  const ran = all.filter((i) => runs.start?.[i] !== null);
  const still = all.filter((i) => runs.start?.[i] === null);
  const summary = `${counted(still.length, "flow")} that did not start: ${statesText(update, still)}`;
  const scale = ticks(span / 1000).map((second) =>
    h("span", { "--l": at(start + second * 1000) }, second ? ticked(second) : "0"),
  );
  return section(
    "Timeline",
    count,
    key(),
    ran.length
      ? h("div.frame", {}, h("div.ticks", { "aria-hidden": "true" }, scale), h("ol.timeline", {}, ran.map(draw)))
      : empty("No flow had to run."),
    still.length ? folded(summary, () => [h("ol.timeline", {}, still.map(draw))]) : null,
  );
}

function key(): HTMLElement {
  return h(
    "p.key",
    {},
    h("span", {}, h("i.wait"), "waits for what it reads, or for a free place"),
    h("span", {}, h("i.ok"), "runs"),
    h("span", {}, "point at a flow to see what it waited for"),
  );
}

/** The line of one flow; `at` gives the place of a moment on the scale. */
function flowLine(
  overview: Overview,
  update: UpdatePage,
  i: number,
  end: number,
  at: (moment: number) => string,
): HTMLElement {
  const runs = update.runs;
  const state = runs.status?.[i] ?? "";
  const from = runs.start?.[i] ?? null;
  const to = runs.end?.[i] ?? end;
  const queued = runs.queued?.[i] ?? update.start;
  const took = from === null ? "" : duration(between(from, to));
  const rows = runs.rows?.[i] ?? 0;
  const dropped = runs.dropped?.[i] ?? 0;
  const last = lastInput(update, i);
  const waited = last === null || from === null ? "" : `waited for ${name(overview, runs.d?.[last] ?? "")}`;
  const reason = runs.reason?.[i] ?? "";
  const facts = [
    word(state),
    took,
    rows ? counted(rows, "row") : "",
    dropped ? `${compact(dropped)} dropped` : "",
    waited,
    reason,
  ].filter(Boolean);
  const bars: Child[] = [];
  if (from !== null) {
    if (queued !== null && from > queued) bars.push(h("i.wait", { "--l": at(queued), "--r": at(from) }));
    bars.push(h(`i.bar.${tone(state)}`, { "--l": at(from), "--r": at(to) }));
  }
  return h(
    "li",
    { title: facts.join(" · ") },
    h(
      "span.who",
      {},
      mark(state),
      datasetLink(overview, runs.d?.[i] ?? ""),
      runs.flow?.[i] ? h("small", {}, runs.flow[i]) : "",
    ),
    h("span.lane", { "aria-hidden": "true" }, bars),
    h("span.took", {}, [rows ? compact(rows) : "", took || word(state)].filter(Boolean).join(" · ")),
    h("span.sr", {}, facts.join(", ")),
    h("span.why", {}, [waited, reason && `ran because ${reason}`].filter(Boolean).join(" · ")),
  );
}

/** The end of the scale while an update runs. */
const newest = (moments: (number | null)[], live: boolean, least: number): number =>
  Math.max(...moments.map((moment) => moment ?? 0), live ? Date.now() : 0, least);

/** Round moments, at most six of them. */
function ticks(seconds: number): number[] {
  const step = STEPS.find((s) => seconds / s <= 6) ?? seconds / 6;
  return Array.from({ length: Math.floor(seconds / step) + 1 }, (_, i) => i * step);
}

/** Of what a flow reads, the flow that ended last before it began. */
function lastInput(update: UpdatePage, i: number): number | null {
  const { waited, start, end } = update.runs;
  let found: number | null = null;
  for (const k of waited?.[i] ?? []) {
    const ended = end?.[k] ?? null;
    if (ended === null || start?.[k] === null) continue;
    if (found === null || ended > (end?.[found] ?? 0)) found = k;
  }
  return found;
}

function statesText(update: UpdatePage, which: number[]): string {
  const counts: Record<string, number> = {};
  for (const i of which) {
    const state = update.runs.status?.[i] ?? "";
    counts[state] = (counts[state] ?? 0) + 1;
  }
  return flowsText(counts);
}

const name = (overview: Overview, ref: Ref): string => (typeof ref === "string" ? ref : overview.datasets[ref].short);
