// Tables: heads, cells, and the box that scrolls where a table is wider than the page.

import { type Child, h } from "./dom";
import { number, percent } from "./format";
import { grade } from "./states";

/** Heads of columns of text. */
export const texts = (...titles: string[]): HTMLElement[] => titles.map((title) => h("th", { scope: "col" }, title));

/** Heads of columns of numbers, which stand at the right edge. */
export const numbers = (...titles: string[]): HTMLElement[] =>
  titles.map((title) => h("th.num", { scope: "col" }, title));

export interface Look {
  /** Classes of the table beside `data`. */
  table?: string;
  /** Classes of the box beside `scroll`. */
  box?: string;
}

/**
 * A table in a box that scrolls.
 *
 * `label` names it to screen readers; `body` is its rows, or a `tbody` that grows (`growing` in dom.ts).
 */
export function table(
  label: string,
  heads: HTMLElement[],
  body: HTMLElement[] | HTMLElement,
  look: Look = {},
): HTMLElement {
  const rows = Array.isArray(body) ? h("tbody", {}, body) : body;
  nameCells(rows, heads);
  const content = h(`table.data${look.table ? `.${look.table}` : ""}`, {}, h("thead", {}, h("tr", {}, heads)), rows);
  return h(
    `div.scroll${look.box ? `.${look.box}` : ""}`,
    { tabindex: 0, role: "region", "aria-label": label },
    content,
  );
}

/** Gives each cell the title of its column, which stands beside it where a row is a card: on a phone. */
function nameCells(body: HTMLElement, heads: HTMLElement[]): void {
  const titles = heads.map((head) => head.textContent ?? "");
  const name = (row: Node) => {
    if (row instanceof HTMLTableRowElement) [...row.cells].forEach((cell, i) => (cell.dataset.label = titles[i] ?? ""));
  };
  body.childNodes.forEach(name);
  new MutationObserver((changes) => changes.forEach((c) => c.addedNodes.forEach(name))).observe(body, {
    childList: true,
  });
}

/** The cell that names a row. */
export const rowHead = (...children: Child[]): HTMLElement => h("th", { scope: "row" }, ...children);

/** A cell with a number, or with what is shown for one. */
export const numberCell = (value: Child): HTMLElement =>
  h("td.num", {}, typeof value === "number" ? number(value) : (value ?? "–"));

/** A number of rows that did not get through: marked, and a dash where there is none. */
export const lostCell = (rows: number | null | undefined): HTMLElement =>
  numberCell(rows ? h("span.lost", {}, number(rows)) : "–");

/** A number whose nought says nothing. */
export const someCell = (value: number | null | undefined): HTMLElement => numberCell(value ? number(value) : "–");

export const rateCell = (share: number | null): HTMLElement =>
  numberCell(h(`span.rate.${grade(share)}`, {}, percent(share)));
