// Elements. Every text goes through textContent: nothing that data says becomes markup.
// No style attributes: the policy forbids them.

export type Child = Node | string | number | null | undefined | false | Child[];
type Props = Record<string, unknown>;

const SVG = "http://www.w3.org/2000/svg";

function fill(element: Element, props: Props, children: Child[]): void {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value as EventListener);
    else if (key.startsWith("--")) (element as HTMLElement).style.setProperty(key, String(value));
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** An element: `h("p.note", { title: "…" }, "text", …)`. */
export function h(name: string, props: Props = {}, ...children: Child[]): HTMLElement {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  fill(element, props, children);
  return element;
}

/** The same for SVG. */
export function s(name: string, props: Props = {}, ...children: Child[]): SVGElement {
  const [tag, ...classes] = name.split(".");
  const element = document.createElementNS(SVG, tag) as SVGElement;
  if (classes.length) element.setAttribute("class", classes.join(" "));
  fill(element, props, children);
  return element;
}

/** A list that grows as its reader comes near its end: thousands of rows cost nothing until they are looked at. */
export function growing<T>(
  items: T[],
  draw: (item: T, position: number) => HTMLElement,
  into: HTMLElement,
  step = 80,
): void {
  let next = 0;
  const end = h(into.tagName === "TBODY" ? "tr.more" : "div.more", { "aria-hidden": "true" });
  const more = () => {
    end.remove();
    for (const stop = Math.min(items.length, next + step); next < stop; next++) into.append(draw(items[next], next));
    if (next < items.length) into.append(end);
    else watcher.disconnect();
  };
  const watcher = new IntersectionObserver(
    (seen) => {
      if (seen.some((e) => e.isIntersecting)) more();
    },
    { rootMargin: "600px" },
  );
  more();
  watcher.observe(end);
}

/** The body of a table whose rows are drawn as they come into view. */
export function growingRows<T>(items: T[], draw: (item: T, position: number) => HTMLElement, step = 80): HTMLElement {
  const body = h("tbody");
  growing(items, draw, body, step);
  return body;
}

/** A part that is folded away, and filled when it is opened first. */
export function folded(summary: string, content: () => Child[]): HTMLElement {
  let filled = false;
  const fill = () => {
    if (!filled) append(element, content());
    filled = true;
  };
  const element = h("details", { ontoggle: fill }, h("summary", {}, summary));
  return element;
}

/** A figure of a list of tiles: what it is, its value, a remark. */
export function tile(
  label: string,
  value: string,
  remark: string,
  { mood = "", title = null as string | null } = {},
): HTMLElement {
  const words = [h("dt", {}, label), h("dd", {}, h("b", {}, value), h("small", {}, remark))];
  return h(`div.tile${mood && `.${mood}`}`, { title }, words);
}

/** A section with a heading; `count` stands beside it. */
export function section(title: string, count: Child, ...children: Child[]): HTMLElement {
  const id = `s-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return h(
    "section.block",
    { "aria-labelledby": id },
    h("h2", { id }, title, count !== null && h("span.count", {}, count)),
    ...children,
  );
}

export const empty = (...children: Child[]): HTMLElement => h("p.empty", {}, ...children);

export function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
