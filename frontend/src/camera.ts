// The part of the graph that is seen: moved by dragging, zoomed by wheel, pinch and buttons.

import { h } from "./dom";
import { HEIGHT, type Placed, WIDTH } from "./layout";

/** The scale below which names are hard to read. */
export const LEGIBLE = 0.78;

export interface Camera {
  /** The buttons that zoom. */
  controls: HTMLElement;
  /** Moves to a place that is out of sight. */
  reveal(at: { x: number; y: number }): void;
}

/** Moves and zooms `plane` within `view`. */
export function camera(view: HTMLElement, plane: HTMLElement, placed: Placed): Camera {
  let x = 0;
  let y = 0;
  let scale = 1;
  let touched = false;
  let resting = 0;
  const touches = new Map<number, { x: number; y: number }>();
  const apply = () => {
    plane.style.setProperty("transform", `translate(${x}px, ${y}px) scale(${scale})`);
    plane.classList.toggle("far", scale < 0.5);
    // A layer of its own moves fast and is drawn again, sharp, when it rests.
    plane.classList.add("fast");
    clearTimeout(resting);
    resting = window.setTimeout(() => plane.classList.remove("fast"), 250);
  };
  const limit = (value: number) => Math.min(2, Math.max(0.08, value));
  function zoom(factor: number, cx = view.clientWidth / 2, cy = view.clientHeight / 2): void {
    const next = limit(scale * factor);
    x = cx - ((cx - x) * next) / scale;
    y = cy - ((cy - y) * next) / scale;
    scale = next;
    touched = true;
    apply();
  }
  function fit(): void {
    const [w, tall] = [view.clientWidth, view.clientHeight];
    if (!w || !tall) return;
    scale = Math.min(1, Math.max(0.08, Math.min(w / placed.width, tall / placed.height)));
    if (scale < LEGIBLE && !touched) scale = LEGIBLE; // the whole is one button away
    x = Math.max(0, (w - placed.width * scale) / 2);
    y = Math.max(0, (tall - placed.height * scale) / 2);
    apply();
  }
  function reveal(at: { x: number; y: number }): void {
    if (scale < 0.5) scale = 0.8;
    const [left, top] = [at.x * scale + x, at.y * scale + y];
    const [w, tall] = [view.clientWidth, view.clientHeight];
    if (left < 20 || left + WIDTH * scale > w - 20) x = w / 2 - (at.x + WIDTH / 2) * scale;
    if (top < 20 || top + HEIGHT * scale > tall - 20) y = tall / 2 - (at.y + HEIGHT / 2) * scale;
    view.scrollTo(0, 0);
    apply();
  }
  view.addEventListener(
    "wheel",
    (event) => {
      const meant = event.ctrlKey || event.metaKey || event.shiftKey || view.matches(":focus-within, .active");
      if (!meant) return; // the page scrolls
      event.preventDefault();
      const box = view.getBoundingClientRect();
      zoom(
        Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)),
        event.clientX - box.left,
        event.clientY - box.top,
      );
    },
    { passive: false },
  );
  view.addEventListener("pointerdown", (event) => {
    touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
    view.classList.add("active");
  });
  document.addEventListener("pointerdown", (event) => {
    if (!view.contains(event.target as Node)) view.classList.remove("active");
  });
  view.addEventListener("pointermove", (event) => {
    const before = touches.get(event.pointerId);
    if (!before) return;
    const others = [...touches].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
    const box = view.getBoundingClientRect();
    if (others.length) {
      const [was, now] = [before, { x: event.clientX, y: event.clientY }].map((p) =>
        Math.hypot(p.x - others[0].x, p.y - others[0].y),
      );
      zoom(now / (was || 1), (event.clientX + others[0].x) / 2 - box.left, (event.clientY + others[0].y) / 2 - box.top);
    } else {
      if (Math.hypot(event.clientX - before.x, event.clientY - before.y) < 4 && !view.classList.contains("moving"))
        return;
      if (!view.classList.contains("moving")) {
        view.classList.add("moving");
        view.setPointerCapture(event.pointerId);
      }
      x += event.clientX - before.x;
      y += event.clientY - before.y;
      touched = true;
      apply();
    }
    touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  const release = (event: PointerEvent) => {
    touches.delete(event.pointerId);
    setTimeout(() => view.classList.remove("moving"));
  };
  view.addEventListener("pointerup", release);
  view.addEventListener("pointercancel", release);
  view.addEventListener(
    "click",
    (event) => {
      if (view.classList.contains("moving")) {
        event.stopPropagation();
        event.preventDefault();
      }
    },
    true,
  );
  new ResizeObserver(() => {
    if (!touched) fit();
  }).observe(view);
  const button = (label: string, text: string, action: () => void) =>
    h("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
  const controls = h(
    "div.zoom",
    {},
    button("Zoom in", "+", () => zoom(1.3)),
    button("Zoom out", "−", () => zoom(1 / 1.3)),
    button("Show the whole graph", "⤢", () => {
      touched = true;
      fit();
    }),
  );
  return { controls, reveal };
}
