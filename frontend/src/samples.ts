// Rows of a table as they are stored.

import { h } from "./dom";
import { table, texts } from "./tables";
import type { Sample } from "./types";

type Draw = (value: string | null, column: number) => HTMLElement[] | null;

/** `order`: positions of the columns to show; `special` draws a cell, or gives null for the usual one. */
export function sampleTable(label: string, sample: Sample, order?: number[], special?: Draw): HTMLElement {
  const columns = order ?? sample.columns.map((_, i) => i);
  const usual = (value: string | null) =>
    value === null ? h("span.null", {}, "NULL") : h("span.cell", { title: value }, value);
  const row = (values: (string | null)[]) =>
    h(
      "tr",
      {},
      columns.map((i) => h("td", {}, special?.(values[i], i) ?? usual(values[i]))),
    );
  const heads = texts(...columns.map((i) => sample.columns[i]));
  return table(label, heads, sample.rows.map(row), { table: "sample", box: "rows" });
}
