// The page: header, ways between its views, keys.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { changeView } from "./change";
import { forget, load } from "./data";
import { datasetView } from "./dataset";
import { append, h, s } from "./dom";
import { ago, exactly } from "./format";
import { know } from "./links";
import { follow } from "./live";
import { overviewView } from "./overview";
import { qualityView } from "./quality";
import { searchBox } from "./search";
import { startTheme, switchTheme, theme } from "./theme";
import type { Overview, Quality } from "./types";
import { updateView } from "./update";
import { updatesView } from "./updates";

let overview: Overview;
let turn = 0;
const main = h("main", { id: "main", tabindex: -1 });
const written = h("span.written");

async function view(path: string[]): Promise<HTMLElement> {
  if (path[0] === "quality")
    return qualityView(overview, await load<Quality>("quality"), decodeURIComponent(path[1] ?? ""));
  if (path[0] === "updates") return updatesView(overview, path[1] ? Number(path[1]) : null);
  if (path[0] === "update") return updateView(overview, path[1] ?? "");
  if (path[0] === "change") return changeView(overview);
  if (path[0] === "dataset") return datasetView(overview, decodeURIComponent(path[1] ?? ""));
  return overviewView(overview);
}

const parts = (): string[] => location.hash.replace(/^#\/?/, "").split("/");
let before = "";

/** Shows what the address asks for. `again`: the same with new numbers, so that place and focus stay. */
async function show(again = false): Promise<void> {
  const mine = ++turn;
  const path = parts();
  // Behind the view there is the name of a part of it.
  const depth = path[0] === "change" ? 1 : 2;
  const here = path.slice(0, depth).join("/");
  // Drawing the same graph again takes the focus away.
  const focused = (document.activeElement as HTMLElement | null)?.dataset.key;
  let content: HTMLElement;
  try {
    content = await view(path);
  } catch (problem) {
    content = h(
      "div.page",
      {},
      h("h1", {}, "This part cannot be shown"),
      h("p.empty", {}, String(problem instanceof Error ? problem.message : problem)),
    );
  }
  if (mine !== turn) return;
  const same = again || here === before;
  const place = scrollY;
  if (!same || again || !main.childElementCount) {
    const open = [...main.querySelectorAll("details")].map((d) => d.open);
    main.replaceChildren(content);
    if (again)
      main.querySelectorAll("details").forEach((d, i) => {
        if (open[i]) d.open = true;
      });
  }
  before = here;
  const title = main.querySelector("h1")?.textContent ?? "";
  document.title = `${title.trim()} · Lakelet`;
  document.querySelectorAll<HTMLAnchorElement>("nav.main a").forEach((a) => {
    const tab = a.dataset.tab ?? "";
    const on = tab === "" ? path[0] === "" || path[0] === "dataset" : path[0].startsWith(tab);
    if (on) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  });
  if (again) {
    scrollTo(0, place);
    if (focused)
      document.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  } else if (path[depth] && ["dataset", "change"].includes(path[0]))
    main.querySelector(`[data-part="${CSS.escape(decodeURIComponent(path[depth]))}"]`)?.scrollIntoView();
  else if (!same) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

function header(): HTMLElement {
  const logo = s(
    "svg.logo",
    { viewBox: "0 0 24 24", "aria-hidden": "true" },
    s("path", {
      d: "M2 9c3.5-3 6.5-3 10 0s6.5 3 10 0M2 15c3.5-3 6.5-3 10 0s6.5 3 10 0",
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 2.4,
      "stroke-linecap": "round",
    }),
  );
  const tab = (name: string, text: string) => h("a", { href: `#/${name}`, "data-tab": name }, text);
  const sun = h("button.theme", {
    type: "button",
    "data-key": "theme",
    onclick: () => {
      switchTheme();
      label();
      void show(true);
    },
  });
  const label = () => {
    const text = theme() === "dark" ? "Light theme" : "Dark theme";
    sun.setAttribute("aria-label", text);
    sun.title = text;
    sun.textContent = theme() === "dark" ? "☀" : "☾";
  };
  label();
  return h(
    "header.top",
    {},
    h("a.home", { href: "#/", "aria-label": "Lakelet, all datasets" }, logo, h("span", {}, "Lakelet")),
    h(
      "nav.main",
      { "aria-label": "Views" },
      tab("", "Datasets"),
      tab("quality", "Quality"),
      tab("update", "Updates"),
      overview.change === undefined ? null : tab("change", "Change"),
    ),
    searchBox(() => overview),
    written,
    sun,
  );
}

function tellAge(state = ""): void {
  const text = overview.live ? state || "live" : `written ${ago(overview.generated)}`;
  written.textContent = text;
  written.title = exactly(overview.generated);
  written.classList.toggle("live", overview.live && !state);
}

async function start(): Promise<void> {
  startTheme(() => void show(true));
  try {
    overview = know(await load<Overview>("overview"));
  } catch {
    append(document.body, [
      h(
        "main",
        {},
        h(
          "div.page",
          {},
          h("h1", {}, "No data"),
          h("p.empty", {}, "data/overview.js is missing: write the report again with lakelet report."),
        ),
      ),
    ]);
    return;
  }
  document.body.replaceChildren(
    h(
      "a.skip",
      {
        href: "#main",
        onclick: (e: Event) => {
          e.preventDefault();
          main.focus();
        },
      },
      "Skip to the content",
    ),
    header(),
    main,
    h(
      "footer.bottom",
      {},
      `Lakelet ${overview.version} · every number on this page is from the event log and the tables`,
      overview.change === undefined ? "" : ", those of the change are from lakelet diff",
    ),
  );
  document.querySelector<HTMLAnchorElement>('nav.main a[data-tab="update"]')?.setAttribute("href", "#/updates");
  tellAge();
  addEventListener("hashchange", () => void show());
  addEventListener("keydown", keys);
  await show();
  if (overview.live)
    follow(
      async (token) => {
        forget(token);
        overview = know(await load<Overview>("overview"));
        tellAge();
        await show(true);
      },
      (yes) => tellAge(yes ? "" : "not connected"),
    );
}

function keys(event: KeyboardEvent): void {
  const typing = (event.target as HTMLElement).matches?.("input, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    document.getElementById("search")?.focus();
  } else if (event.key === "Escape" && !typing && parts()[0] !== "") {
    location.hash = parts()[0] === "update" ? "#/updates" : "#/";
  }
}

void start();
