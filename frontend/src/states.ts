// States have a colour, a mark and a word; none of them is told by its colour alone.

import { h, s } from "./dom";
import { counted, number } from "./format";
import type { Summary } from "./types";

const MARKS: Record<string, [string, string]> = {
  // class, path in a box of 16
  COMPLETED: ["ok", "M3.5 8.5l3 3 6-7"],
  IDLE: ["idle", "M4 8h8"],
  RUNNING: ["running", "M5.5 3.8v8.4l6.5-4.2z"],
  STARTING: ["running", "M5.5 3.8v8.4l6.5-4.2z"],
  PLANNING: ["running", "M5.5 3.8v8.4l6.5-4.2z"],
  INITIALIZING: ["running", "M5.5 3.8v8.4l6.5-4.2z"],
  SETTING_UP_TABLES: ["running", "M5.5 3.8v8.4l6.5-4.2z"],
  RESETTING: ["running", "M5.5 3.8v8.4l6.5-4.2z"],
  STOPPING: ["skipped", "M5 5h6v6h-6z"],
  FAILED: ["failed", "M4.5 4.5l7 7M11.5 4.5l-7 7"],
  SKIPPED: ["skipped", "M4 4.5l4 3.5-4 3.5M11.5 4.5v7"],
  STOPPED: ["skipped", "M5 5h6v6h-6z"],
  CANCELED: ["skipped", "M5 5h6v6h-6z"],
  QUEUED: ["queued", "M8 4.5v4l2.5 1.5"],
  CREATED: ["queued", "M8 4.5v4l2.5 1.5"],
  EXCLUDED: ["queued", "M4.5 11.5l7-7"],
  // of datasets whose code changed
  DIFFERENT: ["skipped", "M4 6h8M4 10h8M10 3.5l-4 9"],
  NEW: ["idle", "M8 4v8M4 8h8"],
  EQUAL: ["ok", "M4 6h8M4 10h8"],
};
const UNKNOWN: [string, string] = ["none", "M8 5.5v.1M8 8v3"];

export const tone = (state: string): string => (MARKS[state] ?? UNKNOWN)[0];
export const word = (state: string): string => (state ? state.toLowerCase().replaceAll("_", " ") : "not run yet");

export function mark(state: string): SVGElement {
  const [kind, path] = MARKS[state] ?? UNKNOWN;
  const shape = s("path", {
    d: path,
    fill: kind === "running" ? "currentColor" : "none",
    stroke: "currentColor",
    "stroke-width": 2,
  });
  return s(`svg.mark.${kind}`, { viewBox: "0 0 16 16", "aria-hidden": "true" }, shape);
}

export const badge = (state: string): HTMLElement => h(`span.badge.${tone(state)}`, {}, mark(state), word(state));

/** The order in which states are counted and filtered. */
export const GROUPS: [string, string[]][] = [
  ["failed", ["FAILED"]],
  ["running", ["RUNNING", "STARTING", "PLANNING"]],
  ["skipped", ["SKIPPED", "STOPPED"]],
  ["queued", ["QUEUED", "EXCLUDED"]],
  ["completed", ["COMPLETED"]],
  ["idle", ["IDLE"]],
  ["not run", [""]],
];

/** Places of states, the worst first. */
export const severity = (state: string): number => GROUPS.findIndex(([, states]) => states.includes(state));

/** Class of a pass rate; the words are in the legend of the quality view. */
export function grade(rate: number | null): string {
  if (rate === null) return "none";
  if (rate === 1) return "r5";
  if (rate >= 0.999) return "r4";
  if (rate >= 0.99) return "r3";
  if (rate >= 0.95) return "r2";
  return "r1";
}

export const rate = (passed: number, failed: number): number | null =>
  passed + failed ? passed / (passed + failed) : null;

/** What the rules of one update found: violations, never rows that broke rules, and rows that were left out. */
export function foundText(u: Summary): string {
  const rules = u.measured_rules
    ? `${counted(u.violations, "violation")} of ${counted(u.broken_rules, "rule")}`
    : "no rule measured";
  const met = u.measured_rules && !u.broken_rules ? `${counted(u.measured_rules, "rule")} met by every row` : rules;
  const held = u.quarantined ? ` (${number(u.quarantined)} quarantined)` : "";
  return `${met}, ${counted(u.dropped, "row")} dropped${held}`;
}

const ORDER = ["FAILED", "SKIPPED", "RUNNING", "COMPLETED", "IDLE", "STOPPED", "EXCLUDED", "QUEUED"];

/** How many flows are in which state. */
export const flowsText = (flows: Record<string, number>): string =>
  ORDER.filter((state) => flows[state])
    .map((state) => `${flows[state]} ${state.toLowerCase()}`)
    .join(", ");
