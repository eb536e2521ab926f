// Numbers and moments as texts.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

export const number = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : whole.format(value);
export const compact = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : value < 10000 ? whole.format(value) : short.format(value);
/** A number with its noun, `1 row` or `2 rows`; `show` writes the number. */
export const counted = (value: number, one: string, many = `${one}s`, show = number): string =>
  `${show(value)} ${value === 1 ? one : many}`;

/** Only what is complete is 100 %, only nothing is 0 %. */
export function percent(rate: number | null | undefined): string {
  if (rate === null || rate === undefined) return "–";
  if (rate === 0 || rate === 1) return `${rate * 100}%`;
  return `${Math.min(Math.max(rate * 100, 0.01), 99.99).toFixed(2)}%`;
}

export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s`;
  return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} min`;
}

/** Short enough for an axis. */
export const ticked = (seconds: number): string =>
  seconds < 60
    ? `${+seconds.toFixed(1)} s`
    : seconds < 3600
      ? `${+(seconds / 60).toFixed(1)} min`
      : `${+(seconds / 3600).toFixed(1)} h`;

export const between = (start: number | null, end: number | null): number | null =>
  start === null || end === null ? null : Math.max(0, end - start) / 1000;

export const when = (moment: number | null | undefined): string =>
  moment === null || moment === undefined ? "–" : day.format(moment);
export const exactly = (moment: number | null | undefined): string =>
  moment === null || moment === undefined ? "" : full.format(moment);

export function ago(moment: number | null | undefined, now = Date.now()): string {
  if (moment === null || moment === undefined) return "never";
  const seconds = Math.max(0, (now - moment) / 1000);
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return counted(Math.floor(seconds / 86400), "day") + " ago";
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  let rest = value;
  let unit = 0;
  for (; rest >= 1000 && unit < 4; unit++) rest /= 1000;
  return `${unit && rest < 100 ? rest.toFixed(1) : Math.round(rest)} ${["B", "kB", "MB", "GB", "TB"][unit]}`;
}

const KINDS: Record<string, string> = {
  STREAMING_TABLE: "streaming table",
  MATERIALIZED_VIEW: "materialized view",
  SINK: "sink",
  VIEW: "view",
  "": "view or outside table",
};
export const kind = (text: string): string => KINDS[text] ?? text.toLowerCase().replaceAll("_", " ");
