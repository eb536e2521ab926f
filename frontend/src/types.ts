// The documents that `lakelet report` writes; their shapes are made in src/lakelet/dashboard/documents.py.

export type Moment = number | null;
/** Number of a dataset on the page, or the name of one that is not on it. */
export type Ref = number | string;

export interface Summary {
  n: number;
  short: string;
  pipeline: string;
  state: string;
  cause: string;
  start: Moment;
  end: Moment;
  rows: number;
  dropped: number;
  quarantined: number;
  violations: number;
  /** Rules that a row broke, of those that were measured. */
  broken_rules: number;
  measured_rules: number;
  /** Table checks that it made: [failed, not run, all] */
  check_counts: [number, number, number];
  flows: Record<string, number>;
  schema_changes: number;
  /** The first sentence of its first error, and the dataset that it is about; "" where it is about the update. */
  first_error: string;
  first_failed: string;
}

export interface Dataset {
  name: string;
  short: string;
  kind: string;
  owner: string;
  tags: string[];
  /** Its description. */
  about: string;
  pipeline: string;
  layer: string;
  in: number[];
  state: string;
  reason: string;
  update: number | null;
  rows: number | null;
  wrote: number;
  dropped: number;
  held: number | null;
  /** The newest update that measured its rules; violations, broken rules and rate are of that one. */
  measured: number | null;
  violations: number;
  broken_rules: number;
  rate: number | null;
  failing: Streak | null;
  rows_at: Moment;
  done_at: Moment;
  seconds: number | null;
  rules: number;
  /** Table checks: [failed, not run, all] */
  checks: [number, number, number];
  wrote_series: number[];
}

export interface Overview {
  format: number;
  version: string;
  generated: number;
  live: boolean;
  pipelines: string[];
  updates: number;
  /** The beginnings of the ids of all updates, which are in their addresses. */
  ids: string[];
  page: number;
  recent: Summary[];
  changes: [string, string, string, string][];
  datasets: Dataset[];
  freshness: Freshness[];
  affected: Affected[];
  /** How many datasets a change of the code would not leave equal; only with a result of lakelet diff. */
  change?: number;
}

/** How old a dataset is against all that is upstream of it. */
export interface Freshness {
  d: Ref;
  /** Its sources' newest change, and the newest of their changes that it has. */
  newest: Moment;
  contains: Moment;
  /** The first change that it does not have. */
  since: Moment;
  lag: number;
  rows: number;
  for: Ref[];
}

/** A dataset with a problem, and what is downstream of it: [dataset, steps]. */
export interface Affected {
  d: Ref;
  problem: string;
  since: Moment;
  updates: number;
  datasets: [Ref, number][];
}

/** One kind of input that could not be read whole; `points`: [update, records]; `place`: [file, line, unit]. */
export interface BadInput {
  problem: string;
  cause: string;
  remedy: string;
  points: [number, number][];
  place: [string, number, string] | null;
  /** The column of a rescued value, or nothing; the first such value or record. */
  sample: [string, string] | null;
}

/** [number of the update, passed, failed] */
export type Point = [number, number, number];
/** Since when something is at fault: [number of the first update, how many updates, both as a text] */
export type Streak = [number, number, string];

/** Where a rule stands. */
export interface RuleState {
  points: Point[];
  failing: Streak | null;
  /** [number of the update, what changed, text before, action before] */
  edits: [number, string, string, string][];
  /** Names and values of the row by which it stopped its flow; null if it did not. */
  stops: [string, string][] | null;
}

/** What its author says of a rule or a check. */
export interface About {
  description: string;
  owner: string;
  tags: string[];
}

export interface Check extends About {
  name: string;
  severity: string;
  success: boolean | null;
  version: number | null;
  at: Moment;
  observed: string;
  expected: string;
  message: string;
  /** Not in the results of one update. */
  failing?: Streak | null;
}

export interface QualityRow extends About, RuleState {
  d: number;
  rule: string;
  constraint: string;
  action: string;
}
export interface Quality {
  rows: QualityRow[];
  checks: (Check & { d: number })[];
}
export interface Search {
  columns: string[][];
}

export interface Rule extends About, RuleState {
  name: string;
  constraint: string;
  action: string;
  sample: BrokenRows | null;
}
/** Rows that broke a rule in update `n`; of each the names and values of some columns, and the file that it came in. */
export interface BrokenRows {
  n: number;
  short: string;
  rows: [[string, string][], string | null][];
}
export interface Sample {
  columns: string[];
  rows: (string | null)[][];
  note: string;
}
export interface SchemaChange {
  n: number;
  at: Moment;
  flow: string;
  added: [string, string][];
  widened: [string, string][];
  file: string | null;
  d?: Ref;
}
export interface FlowFailure {
  flow: string;
  code: string;
  /** The first sentence of the text. */
  sentence: string;
  text: string;
  n: number;
  at: Moment;
  d?: Ref;
}
export interface Runs {
  n?: number[];
  at?: Moment[];
  state?: string[];
  seconds?: (number | null)[];
  rows?: number[];
  deleted?: number[];
  dropped?: number[];
  quarantined?: number[];
}
export interface Table {
  rows: number | null;
  version: number;
  bytes: number;
  files: number;
  versions: [number, Moment, string, number | null][];
  sample: Sample;
  quarantine: (Sample & { held: number | null }) | null;
}
export interface DatasetPage {
  bad_input: BadInput[];
  name: string;
  flows: [string, string, string, [string, number] | null][];
  transforms: string[];
  readers: number[];
  /** Name, type, columns that it is computed from, columns that are computed from it, comment. */
  columns: [string, string, [Ref, string][], [Ref, string][], string][];
  lineage: boolean;
  rules: Rule[];
  checks: Check[];
  runs: Runs;
  idle: number;
  source: { file: string; line: number; first: number; lines: string[] } | null;
  schema: SchemaChange[];
  failures: FlowFailure[];
  table: Table | null;
}

export interface FlowRuns {
  flow?: string[];
  d?: Ref[];
  status?: string[];
  queued?: Moment[];
  start?: Moment[];
  end?: Moment[];
  rows?: number[];
  deleted?: number[];
  dropped?: number[];
  quarantined?: number[];
  late?: number[];
  corrupt?: number[];
  attempts?: number[];
  reason?: string[];
  waited?: number[][];
  backlog?: (null | (number | null)[])[];
}
export interface UpdatePage extends Summary {
  id: string;
  full_refresh: string[];
  runs: FlowRuns;
  rules: [Ref, string, number, number][];
  /** Of rules: failed rows of batches that a fail rule stopped before they were written; whether it was this rule. */
  unwritten: [Ref, string, number, boolean][];
  failures: FlowFailure[];
  error: { code: string; sentence: string; text: string } | null;
  schema: SchemaChange[];
  checks: (Check & { d: Ref })[];
  warnings: string[];
}
export interface UpdatesPage {
  updates: Summary[];
}
