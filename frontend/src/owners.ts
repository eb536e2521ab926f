// Who answers for datasets, rules and checks; the owner that a reader has chosen counts in all lists.

import { choice } from "./controls";
import { type Child, h } from "./dom";
import { link } from "./links";

interface Owned {
  owner: string;
  tags: string[];
}

let mine = "";
let asked = "";

export const toOwner = (owner: string): string => `#/quality/${encodeURIComponent(owner)}`;
export const isMine = (found: Owned): boolean => !mine || found.owner === mine;

/** Takes the owner that an address names; a later choice of the reader stays until the address names another one. */
export function askFor(owner: string): void {
  if (owner && owner !== asked) mine = owner;
  asked = owner;
}

/** The control that chooses an owner; nothing where nobody is named. */
export function ownerChoice(key: string, all: Owned[], changed: () => void): HTMLElement | null {
  const owners = [...new Set([...all.map((found) => found.owner), mine])].filter(Boolean).sort();
  if (!owners.length) return null;
  return choice("Owner", key, [["", "every owner"], ...owners.map((o): [string, string] => [o, o])], mine, (owner) => {
    mine = owner;
    changed();
  });
}

/** The texts of what is owned that a filter looks into. */
export const ownedTexts = (found: Owned & { description?: string; about?: string }): string[] => [
  found.owner,
  ...found.tags,
  found.description ?? found.about ?? "",
];

export const tagList = (tags: string[]): Child => tags.map((tag) => h("span.tag", {}, tag));

/** The line below a rule, a check or a dataset that says whose it is. */
export function ownerLine(found: Owned & { description?: string }): HTMLElement | null {
  if (!found.owner && !found.tags.length && !found.description) return null;
  const owner = found.owner ? h("span.owner", {}, "owner ", link(toOwner(found.owner), found.owner)) : null;
  return h("small.about", {}, found.description ? h("span", {}, found.description) : null, owner, tagList(found.tags));
}
