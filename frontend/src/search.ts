// The search box: datasets, columns, rules and updates by their names. `/` leads to it, arrows walk through its hits.

import { load } from "./data";
import { h } from "./dom";
import { when } from "./format";
import { toDataset, toUpdate } from "./links";
import { ownedTexts, toOwner } from "./owners";
import { mark } from "./states";
import type { Overview, Quality, Search } from "./types";

interface Hit {
  href: string;
  text: string;
  about: string;
  state: string;
  weight: number;
}
const MOST = 12;

export function searchBox(overview: () => Overview): HTMLElement {
  const found = h("ul.hits", { id: "hits", role: "listbox", "aria-label": "Found" });
  found.hidden = true;
  const input = h("input", {
    type: "search",
    id: "search",
    placeholder: "Search  ( / )",
    autocomplete: "off",
    spellcheck: "false",
    role: "combobox",
    "aria-label": "Search datasets, columns, rules, owners and updates",
    "aria-expanded": "false",
    "aria-controls": "hits",
    "aria-autocomplete": "list",
  }) as HTMLInputElement;
  let hits: Hit[] = [];
  let chosen = 0;
  let turn = 0;

  function choose(next: number): void {
    chosen = Math.max(0, Math.min(hits.length - 1, next));
    [...found.children].forEach((c, i) => c.setAttribute("aria-selected", String(i === chosen)));
    if (hits.length) {
      input.setAttribute("aria-activedescendant", `hit-${chosen}`);
      found.children[chosen].scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }
  function close(): void {
    found.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }
  function go(hit: Hit | undefined): void {
    if (!hit) return;
    close();
    input.value = "";
    input.blur();
    location.hash = hit.href;
  }
  async function look(): Promise<void> {
    const text = input.value.trim().toLowerCase();
    const mine = ++turn;
    if (!text) {
      close();
      return;
    }
    const [columns, quality] = await Promise.all([load<Search>("search"), load<Quality>("quality")]);
    if (mine !== turn) return;
    hits = matches(overview(), columns, quality, text);
    found.replaceChildren(
      ...(hits.length
        ? hits.map((hit, i) =>
            h(
              "li",
              {
                id: `hit-${i}`,
                role: "option",
                "aria-selected": "false",
                onpointerdown: (e: Event) => {
                  e.preventDefault();
                  go(hit);
                },
              },
              hit.state ? mark(hit.state) : "",
              h("b", {}, hit.text),
              h("small", {}, hit.about),
            ),
          )
        : [
            h(
              "li.none",
              { role: "option", "aria-selected": "false", "aria-disabled": "true" },
              `Nothing is called “${input.value.trim()}”`,
            ),
          ]),
    );
    found.hidden = false;
    input.setAttribute("aria-expanded", "true");
    choose(0);
  }
  input.addEventListener("input", () => void look());
  input.addEventListener("focus", () => void look());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      choose(chosen + 1);
    } else if (event.key === "ArrowUp") {
      event.preventDefault();
      choose(chosen - 1);
    } else if (event.key === "Enter") {
      event.preventDefault();
      go(hits[chosen]);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      input.value = "";
      close();
      input.blur();
    }
  });
  return h("div.search", { role: "search" }, input, found);
}

function matches(overview: Overview, columns: Search, quality: Quality, text: string): Hit[] {
  const found: Hit[] = [];
  const rank = (name: string): number => {
    const at = name.toLowerCase().indexOf(text);
    return at < 0 ? -1 : at === 0 ? 0 : 1;
  };
  /** The text of the owner, tags or description that has what is looked for. */
  const said = (o: Parameters<typeof ownedTexts>[0]): string => ownedTexts(o).find((one) => rank(one) >= 0) ?? "";
  overview.datasets.forEach((d, i) => {
    if (Math.max(rank(d.short), rank(d.name)) >= 0 || said(d))
      found.push({
        href: toDataset(d.name),
        text: d.short,
        about: said(d) || "dataset",
        state: d.state,
        weight: rank(d.short) === 0 ? 0 : rank(d.name) >= 0 ? 1 : 5,
      });
    for (const column of columns.columns[i] ?? []) {
      const at = rank(column);
      if (at >= 0 && found.length < 400)
        found.push({
          href: toDataset(d.name, "columns"),
          text: column,
          about: `column of ${d.short}`,
          state: "",
          weight: at + 3,
        });
    }
  });
  for (const r of quality.rows) {
    const at = rank(r.rule);
    if (at >= 0 || said(r))
      found.push({
        href: toDataset(overview.datasets[r.d].name, "rules"),
        text: r.rule,
        about: `rule of ${overview.datasets[r.d].short}`,
        state: "",
        weight: at >= 0 ? at + 2 : 6,
      });
  }
  const owned = [...overview.datasets, ...quality.rows, ...quality.checks];
  for (const owner of new Set(owned.map((o) => o.owner)))
    if (owner && rank(owner) >= 0)
      found.push({ href: toOwner(owner), text: owner, about: "owner: rules and checks", state: "", weight: 2 });
  for (const c of quality.checks)
    if (rank(c.name) >= 0 || said(c)) {
      const name = typeof c.d === "string" ? c.d : overview.datasets[c.d].name;
      const about = `check of ${typeof c.d === "string" ? c.d : overview.datasets[c.d].short}`;
      found.push({ href: toDataset(name, "rules"), text: c.name, about, state: "", weight: rank(c.name) >= 0 ? 3 : 6 });
    }
  for (const u of overview.recent)
    if (overview.ids[u.n]?.startsWith(text) || text.startsWith(overview.ids[u.n]))
      found.push({ href: toUpdate(u.n), text: `update ${u.short}`, about: when(u.start), state: u.state, weight: 0 });
  return found.sort((a, b) => a.weight - b.weight).slice(0, MOST);
}
