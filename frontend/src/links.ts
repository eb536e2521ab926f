// Ways between the views of the page.

import { type Child, h } from "./dom";
import type { Overview, Ref } from "./types";

export const toDataset = (name: string, part = ""): string =>
  `#/dataset/${encodeURIComponent(name)}${part && `/${part}`}`;
export const toUpdate = (number: number): string => `#/update/${number}`;

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

export const byName = (overview: Overview, name: string): number => overview.datasets.findIndex((d) => d.name === name);
