// What waits and who is affected: failed and late datasets with all that is downstream, and how old tables are.

import { h, section } from "./dom";
import { counted, duration, number, when } from "./format";
import { datasetLink } from "./links";
import { ownerLine } from "./owners";
import { badge } from "./states";
import { numberCell, numbers, rowHead, table, texts } from "./tables";
import type { Affected, Freshness, Overview, Ref } from "./types";

/** Datasets of a list that are named before the rest is counted. */
const NAMED = 12;

/** Failed and late datasets, worst first, each with what is downstream of it; null where there are none. */
export function affected(overview: Overview): HTMLElement | null {
  if (!overview.affected.length) return null;
  const row = (one: Affected) => {
    const failed = one.updates > 1 ? `, ${counted(one.updates, "update")}` : "";
    return h(
      "tr",
      {},
      rowHead(datasetLink(overview, one.d), owner(overview, one.d)),
      h("td", {}, one.problem === "late" ? h("span.lost", {}, "late") : badge(one.problem.toUpperCase())),
      h("td", {}, `${when(one.since)}${failed}`),
      h(
        "td.wraps",
        {},
        names(
          overview,
          one.datasets.map(([d]) => d),
          true,
        ),
      ),
    );
  };
  const heads = texts("Dataset", "Problem", "Since", "Affected downstream");
  return section(
    "Who is affected",
    overview.affected.length,
    table("Who is affected", heads, overview.affected.map(row)),
  );
}

/** How old the datasets are that nobody reads, and those that are behind. */
export function freshness(overview: Overview): HTMLElement | null {
  if (!overview.freshness.length) return null;
  const behind = overview.freshness.filter((one) => one.since !== null).length;
  const row = (one: Freshness) =>
    h(
      "tr",
      {},
      rowHead(datasetLink(overview, one.d), owner(overview, one.d)),
      h("td", {}, one.since === null ? "up to date" : h("span.lost", {}, `behind by ${duration(one.lag)}`)),
      h("td", {}, one.since === null ? "–" : when(one.since)),
      h("td", {}, when(one.newest)),
      numberCell(one.rows ? number(one.rows) : "–"),
      h("td.wraps", {}, names(overview, one.for, false)),
    );
  const heads = [
    ...texts("Dataset", "State", "Behind since", "Newest change"),
    ...numbers("Rows that wait"),
    ...texts("Waiting in"),
  ];
  return section(
    "Freshness",
    behind ? `${behind} behind` : null,
    table("Freshness", heads, overview.freshness.map(row)),
  );
}

function owner(overview: Overview, ref: Ref): HTMLElement | null {
  const name = typeof ref === "number" ? overview.datasets[ref].owner : "";
  return name ? ownerLine({ owner: name, tags: [] }) : null;
}

/** Links to datasets, with their owners where that is asked for: one element, as cells of cards set elements apart. */
function names(overview: Overview, refs: Ref[], owned: boolean): HTMLElement {
  if (!refs.length) return h("span", {}, "–");
  const shown = refs.slice(0, NAMED).flatMap((ref, i) => {
    const whose = owned && typeof ref === "number" ? overview.datasets[ref].owner : "";
    return [i ? ", " : "", datasetLink(overview, ref), whose ? ` (${whose})` : ""];
  });
  const left = refs.length - NAMED;
  return h("span", {}, shown, left > 0 ? ` and ${counted(left, "more", "more")}` : "");
}
