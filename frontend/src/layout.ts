// Places for the datasets: columns by layer and depth, order and heights by dagre.

import { graphlib, layout } from "@dagrejs/dagre";
import type { Dataset } from "./types";

export const WIDTH = 212;
export const HEIGHT = 60;
const LAYERS = ["bronze", "silver", "gold"];

export interface Place {
  x: number;
  y: number;
}
export interface Band {
  name: string;
  left: number;
  right: number;
}
export interface Placed {
  places: Place[];
  edges: { from: number; to: number; path: string }[];
  bands: Band[];
  width: number;
  height: number;
}

const layerOf = (dataset: Dataset): number => LAYERS.indexOf(dataset.layer);

/** The column of each dataset: behind all it reads, and no layer begins before the one in front of it has ended. */
export function ranks(datasets: Dataset[]): number[] {
  const layer = datasets.map(layerOf);
  // What has no layer of its own takes the lowest one that it can have: that of what it reads.
  datasets.forEach((d, i) => {
    if (layer[i] < 0) layer[i] = Math.max(-1, ...d.in.map((j) => layer[j]));
  });
  const within = new Array<number>(datasets.length).fill(0);
  datasets.forEach((d, i) => {
    for (const j of d.in) if (layer[j] === layer[i] && j !== i) within[i] = Math.max(within[i], within[j] + 1);
  });
  const starts = new Map<number, number>();
  let start = 0;
  for (const l of [-1, 0, 1, 2]) {
    const depths = within.filter((_, i) => layer[i] === l);
    starts.set(l, start);
    if (depths.length) start += Math.max(...depths) + 1;
  }
  const found = datasets.map((_, i) => (starts.get(layer[i]) ?? 0) + within[i]);
  // A table of an early layer that reads one of a later layer stands behind it all the same.
  for (let round = 0; round < 3; round++)
    datasets.forEach((d, i) => {
      for (const j of d.in) if (j !== i) found[i] = Math.max(found[i], found[j] + 1);
    });
  return found;
}

export function place(datasets: Dataset[]): Placed {
  const column = ranks(datasets);
  const graph = new graphlib.Graph();
  graph.setGraph({
    rankdir: "LR",
    nodesep: 10,
    ranksep: 78,
    edgesep: 4,
    marginx: 28,
    marginy: 40,
    // Half of dagre's ranks are for the labels of edges.
    ranker: (g: { nodes(): string[]; node(name: string): { rank: number } }) => {
      for (const name of g.nodes()) g.node(name).rank = 2 * (column[Number(name)] ?? 0);
    },
  } as never);
  graph.setDefaultEdgeLabel(() => ({}));
  datasets.forEach((_, i) => graph.setNode(String(i), { width: WIDTH, height: HEIGHT }));
  datasets.forEach((d, i) => {
    for (const j of d.in) if (j !== i && column[j] < column[i]) graph.setEdge(String(j), String(i));
  });
  layout(graph, { disableOptimalOrderHeuristic: datasets.length > 400 } as never);
  const places = datasets.map((_, i) => {
    const node = graph.node(String(i)) as { x: number; y: number };
    return { x: node.x - WIDTH / 2, y: node.y - HEIGHT / 2 };
  });
  if (compact(column, places)) return direct(datasets, places, column);
  const edges = graph.edges().map((e) => {
    const points = (graph.edge(e) as unknown as { points: Place[] }).points;
    const [from, to] = [Number(e.v), Number(e.w)];
    return { from, to, path: curve(places[from], points, places[to]) };
  });
  const size = graph.graph() as { width?: number; height?: number };
  return { places, edges, bands: bands(datasets, places), width: size.width ?? 0, height: size.height ?? 0 };
}

/** Columns of many datasets become several beside each other, in their order: what is read or reads stays near. */
function compact(column: number[], places: Place[]): boolean {
  const most = Math.max(20, Math.round(Math.sqrt(places.length) * 1.6));
  const columns = [...new Set(column)]
    .sort((a, b) => a - b)
    .map((c) =>
      places
        .map((_, i) => i)
        .filter((i) => column[i] === c)
        .sort((a, b) => places[a].y - places[b].y),
    );
  if (columns.every((c) => c.length <= most)) return false;
  const rows = (c: number[]) => Math.ceil(c.length / Math.ceil(c.length / most));
  const tallest = Math.max(...columns.map(rows));
  let left = 28;
  for (const c of columns) {
    const beside = Math.ceil(c.length / most);
    const top = 46 + ((tallest - rows(c)) * (HEIGHT + 12)) / 2;
    c.forEach((i, k) => {
      places[i] = { x: left + (k % beside) * (WIDTH + 14), y: top + Math.floor(k / beside) * (HEIGHT + 12) };
    });
    left += beside * (WIDTH + 14) + 96;
  }
  return true;
}

function direct(datasets: Dataset[], places: Place[], column: number[]): Placed {
  const edges = datasets.flatMap((d, to) =>
    d.in
      .filter((from) => from !== to && column[from] < column[to])
      .map((from) => ({ from, to, path: curve(places[from], [], places[to]) })),
  );
  const [right, bottom] = [Math.max(...places.map((p) => p.x)) + WIDTH, Math.max(...places.map((p) => p.y)) + HEIGHT];
  return { places, edges, bands: bands(datasets, places), width: right + 28, height: bottom + 28 };
}

function curve(from: Place, points: Place[], to: Place): string {
  const start = { x: from.x + WIDTH, y: from.y + HEIGHT / 2 };
  const end = { x: to.x, y: to.y + HEIGHT / 2 };
  // Of the bends in between only those matter that lead around other nodes.
  const between = points.length > 4 ? points.slice(1, -1).filter((p) => p.x > start.x + 20 && p.x < end.x - 20) : [];
  let text = `M${start.x} ${start.y}`;
  let last = start;
  for (const next of [...between, end]) {
    const half = (next.x - last.x) / 2;
    text += `C${last.x + half} ${last.y} ${next.x - half} ${next.y} ${next.x} ${next.y}`;
    last = next;
  }
  return text;
}

function bands(datasets: Dataset[], places: Place[]): Band[] {
  const found: Band[] = [];
  for (const name of LAYERS) {
    const xs = places.filter((_, i) => datasets[i].layer === name).map((p) => p.x);
    if (xs.length) found.push({ name, left: Math.min(...xs) - 28, right: Math.max(...xs) + WIDTH + 28 });
  }
  return found.every((b, i) => i === 0 || found[i - 1].right <= b.left + 1) ? found : [];
}
