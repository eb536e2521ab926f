// Input of one dataset that could not be read whole: how much, since when, where, why, and what to do.

import { h, section } from "./dom";
import { number, when } from "./format";
import { link, toUpdate } from "./links";
import { numberCell, numbers, rowHead, table, texts } from "./tables";
import type { BadInput, DatasetPage } from "./types";

export function badInput(page: DatasetPage): HTMLElement | null {
  if (!page.bad_input.length) return null;
  const row = (one: BadInput) => {
    const [first] = one.points;
    const [update, records] = one.points[one.points.length - 1];
    return h(
      "tr",
      {},
      rowHead(one.problem, h("small.about", {}, one.cause)),
      numberCell(h("span.lost", {}, number(records))),
      h("td", {}, updateLink(page, update)),
      h("td", {}, trend(one), first[0] !== update ? [", since ", updateLink(page, first[0])] : ""),
      h("td.wraps", {}, place(one), sample(one), h("small.about", {}, one.remedy)),
    );
  };
  const heads = [
    ...texts("Problem"),
    ...numbers("Records"),
    ...texts("Newest in", "Trend", "First place, and what to do"),
  ];
  return section("Bad input", page.bad_input.length, table("Bad input", heads, page.bad_input.map(row)));
}

/** An update by the time at which this dataset began in it. */
const updateLink = (page: DatasetPage, update: number): HTMLElement =>
  link(toUpdate(update), when(page.runs.at?.[page.runs.n?.indexOf(update) ?? -1]));

/** Whether the newest update that has any has more than the one before. */
function trend(one: BadInput): string {
  if (one.points.length < 2) return "new";
  const [before, last] = one.points.slice(-2).map(([, records]) => records);
  return last > before
    ? `more than before (${number(before)})`
    : last < before
      ? `fewer than before (${number(before)})`
      : "as before";
}

function place(one: BadInput): HTMLElement | null {
  if (!one.place) return null;
  const [file, line, unit] = one.place;
  return h("code", {}, file.replace(/^file:(\/\/)?/, ""), line ? `, ${unit} ${line}` : "");
}

/** The first such value with its column, or the first such record. */
function sample(one: BadInput): HTMLElement | null {
  if (!one.sample) return null;
  const [column, text] = one.sample;
  return h("div.broke", {}, column ? h("code", {}, `${column} = ${text}`) : h("code", {}, text));
}
