// Ways between the views of the page.

import { type Child, h } from "./dom";
import type { Overview, Ref, Summary } from "./types";

export const toDataset = (name: string, part = ""): string =>
  `#/dataset/${encodeURIComponent(name)}${part && `/${part}`}`;
/** The address of an update has the beginning of its id, which stays when older updates leave the page. */
export const toUpdate = (number: number): string => `#/update/${ids[number] ?? number}`;

let ids: string[] = [];
/** Fewer characters of an id are taken for a number. */
const FEWEST = 6;

/** The updates of the page, for addresses. */
export function know(overview: Overview): Overview {
  ids = overview.ids;
  return overview;
}

/** The update of an address: by the beginning of its id, or by its number; null where there is none. */
export function updateNumber(overview: Overview, address: string): number | null {
  const asked = address.toLowerCase();
  const matches = (id: string) => id.startsWith(asked) || asked.startsWith(id);
  const found = asked.length < FEWEST ? -1 : overview.ids.map(matches).lastIndexOf(true);
  if (found >= 0) return found;
  return /^\d{1,5}$/.test(asked) && Number(asked) < overview.updates ? Number(asked) : null;
}

/** What texts call an update. */
export const shortOf = (overview: Overview, number: number): string => (overview.ids[number] ?? "").slice(0, 6);

export function link(href: string, ...children: Child[]): HTMLElement {
  return h("a", { href }, ...children);
}

/** A dataset by its number; what the page does not have is text. */
export function datasetLink(overview: Overview, ref: Ref, part = ""): HTMLElement {
  if (typeof ref === "string") return h("span.name", { title: "not on this page" }, ref);
  const dataset = overview.datasets[ref];
  return h("a.name", { href: toDataset(dataset.name, part), title: dataset.name }, dataset.short);
}

/** The first error of an update, behind the name of the dataset that it is about. */
export function firstError(overview: Overview, u: Summary): Child {
  if (!u.first_error) return "";
  const about = byName(overview, u.first_failed);
  const name = about >= 0 ? datasetLink(overview, about) : u.first_failed;
  return [name, u.first_failed ? ": " : "", u.first_error];
}

export const byName = (overview: Overview, name: string): number => overview.datasets.findIndex((d) => d.name === name);
