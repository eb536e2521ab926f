// Charts: uPlot for series over updates, small drawings for cells of tables.

import uPlot from "uplot";
import { css, h } from "./dom";
import { compact, when } from "./format";
import { grade } from "./states";
import type { Point } from "./types";

export interface Line {
  label: string;
  values: (number | null)[];
  colour: string;
  bars?: boolean;
  dash?: boolean;
}

/** A chart over updates; `at` are their moments, `labels` what the reader hears of it. */
export function chart(
  label: string,
  at: (number | null)[],
  lines: Line[],
  show: (value: number) => string,
  range?: [number | null, number | null],
  tick = show,
  marks: { at: number; colour: string }[] = [],
): HTMLElement {
  const place = h("div.plot", { role: "img", "aria-label": label });
  const legend = h("div.legend", { "aria-hidden": "true" });
  const holder = h("div.chart", {}, place, legend);
  const tell = (position: number | null) => {
    const shown = position ?? at.length - 1;
    legend.replaceChildren(
      h("span.at", {}, when(at[shown])),
      ...lines.map((line) => {
        const value = line.values[shown];
        return h(
          "span",
          { "--c": line.colour },
          h("i"),
          `${line.label} `,
          h("b", {}, value === null || value === undefined ? "–" : show(value)),
        );
      }),
    );
  };
  const axis = {
    stroke: css("--muted"),
    grid: { stroke: css("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  const many = at.length > 60;
  const counts = show === compact; // there is no half a row
  const options: uPlot.Options = {
    width: 600,
    height: 170,
    padding: [10, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: (_, low, high) => [low - 0.5, high + 0.5] },
      y: { range: (_, low, high) => bounds(low, high, range) },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        values: (_, ticks) => momentsOf(ticks, at),
        size: 40,
        space: 70,
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500],
      },
      { ...axis, size: 56, values: (_, ticks) => ticks.map((t) => (counts && !Number.isInteger(t) ? "" : tick(t))) },
    ],
    series: [
      {},
      ...lines.map((line): uPlot.Series => ({
        label: line.label,
        stroke: line.colour,
        width: line.bars ? 0 : 1.75,
        fill: line.bars ? line.colour : undefined,
        paths: line.bars ? uPlot.paths.bars?.({ size: [0.7, 26], radius: 0.15 }) : undefined,
        dash: line.dash ? [4, 3] : undefined,
        points: { show: !line.bars && !many, size: 5, fill: css("--surface") },
        spanGaps: true,
      })),
    ],
    hooks: { setCursor: [(u) => tell(u.cursor.idx ?? null)], draw: [(u) => drawMarks(u, marks)] },
  };
  const x = at.map((_, i) => i);
  requestAnimationFrame(() => {
    if (!place.isConnected) return;
    const plot = new uPlot(
      { ...options, width: place.clientWidth || 600 },
      [x, ...lines.map((l) => l.values)] as uPlot.AlignedData,
      place,
    );
    new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 170 })).observe(place);
  });
  tell(null);
  return holder;
}

/** The time of each tick, and below it the day where it is another one than that of the tick before. */
function momentsOf(ticks: number[], at: (number | null)[]): string[] {
  let before = "";
  return ticks.map((tick) => {
    const moment = Number.isInteger(tick) ? at[tick] : undefined;
    if (moment === undefined || moment === null) return "";
    const [day, time] = when(moment).split(", ");
    const shown = day === before ? time : `${time}\n${day}`;
    before = day;
    return shown;
  });
}

/** Upright lines where something changed by definition. */
function drawMarks(u: uPlot, marks: { at: number; colour: string }[]): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const mark of marks) {
    const x = Math.round(u.valToPos(mark.at - 0.5, "x", true));
    ctx.strokeStyle = mark.colour;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function bounds(low: number, high: number, range?: [number | null, number | null]): [number, number] {
  const bottom = range?.[0] ?? low;
  const top = range?.[1] ?? high;
  const room = (top - bottom) * 0.08 || (range?.[1] === 1 ? 0.005 : 1);
  return [range?.[0] ?? Math.max(0, bottom - room), range?.[1] ?? top + room];
}

function canvas(
  width: number,
  height: number,
  label: string,
  paint: (c: CanvasRenderingContext2D) => void,
): HTMLCanvasElement {
  const ratio = window.devicePixelRatio || 1;
  const element = h("canvas.spark", {
    width: width * ratio,
    height: height * ratio,
    role: "img",
    "aria-label": label,
    "--w": `${width}px`,
    "--h": `${height}px`,
  }) as HTMLCanvasElement;
  const context = element.getContext("2d");
  if (context) {
    context.scale(ratio, ratio);
    paint(context);
  }
  return element;
}

/** A chart with its title. */
export const figure = (title: string, content: HTMLElement): HTMLElement =>
  h("figure", {}, h("figcaption", {}, title), content);

/**
 * One cell per measurement, coloured by its pass rate; the newest is at the right.
 *
 * `edits`: updates before whose cells a line stands.
 */
export function strip(points: Point[], slots: number, label: string, edits: number[] = []): HTMLCanvasElement {
  const cell = 7;
  const gap = 1.5;
  const width = slots * (cell + gap);
  const made = canvas(width, 18, label, (c) => {
    const colours: Record<string, string> = {};
    points.slice(-slots).forEach(([n, passed, failed], k, shown) => {
      const at = width - (shown.length - k) * (cell + gap);
      if (k > 0 && edits.some((edit) => edit <= n && edit > shown[k - 1][0])) {
        c.fillStyle = css("--ink");
        c.fillRect(at - gap - 0.25, 0, 2, 18);
      }
      const name = grade(passed + failed ? passed / (passed + failed) : null);
      c.fillStyle = colours[name] ??= css(`--${name}`);
      c.beginPath();
      c.roundRect(at, 1, cell, 16, 2);
      c.fill();
    });
  });
  return made;
}

/** Small bars, the newest at the right. */
export function bars(values: number[], label: string, width = 84, height = 20): HTMLCanvasElement {
  return canvas(width, height, label, (c) => {
    const highest = Math.max(1, ...values);
    const step = 3.5;
    c.fillStyle = css("--accent");
    values.slice(-Math.floor(width / step)).forEach((value, k, shown) => {
      const tall = value ? Math.max(1.5, (value / highest) * height) : 0.75;
      c.globalAlpha = value ? 0.85 : 0.35;
      c.fillRect(width - (shown.length - k) * step, height - tall, step - 1, tall);
    });
  });
}

export const rowsText = (values: number[]): string =>
  `Rows written by the last ${values.length} runs, latest ${compact(values[values.length - 1] ?? 0)}`;
