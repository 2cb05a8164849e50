// The answers of /timeline/v1, in the server's form. Columns are arrays of equal length.

export type Incomplete = { from: number; to: number | null; kind: string; stream?: string; cause?: string; text: string };
export type Answer = { seq: number; revision: number; incomplete?: Incomplete[] | null };
export type Ref = { resource: string; kind: string; namespace?: string; name: string; uid?: string };
export type Point = { seq: number; time: number };
export type Recording = { now: boolean; state: "following" | "behind" | "quiet" | "starting" | "stopped"; since?: number; text: string };
export type Resource = { resource: string; kind: string; namespaced: boolean };

export type Meta = Answer & {
  clusters: { uid: string; name: string }[];
  cluster?: string; // missing if several clusters are served and the request named none; then there is no record's data
  first: Point; head: Point;
  recording: Recording; resources: Resource[]; namespaces: string[];
};
export type Strip = Answer & {
  from: number; to: number; stepMs: number; classes: string[]; counts: number[][]; firstSeq: number[]; lastSeq: number[];
  hidden?: { heartbeat?: number }; before: Record<string, number>; next?: string; ahead?: { deltas: number; missing: number; text?: string };
};
export type Lane = Ref & {
  id: number; depth: number; owner: number | null; born: number | null; ended: number | null; changes: number; hidden: number; trouble?: string;
};
export type Lanes = Answer & { total: number; lanes: Lane[]; next?: string; older?: string; hidden?: { heartbeat?: number }; left?: Record<string, number> };
export type Ticks = Answer & {
  from: number; stepMs: number; lanes: { id: number; time: number[]; seq: number[]; count: number[]; class: number[]; manager: number[] }[];
  classes: string[]; managers: string[]; older?: string;
};
export type States = Answer & { from: number; lanes: { id: number; from: number[]; to: number[]; state: string[]; text: string[] }[] };
export type Change = { op: string; path: string; field?: string; from?: string; old?: unknown; new?: unknown };
export type Line = { text: string; path: string; folded?: boolean; mark?: string };
export type Told = { time: number; type: string; reason: string; message: string; count: string };
export type Delta = {
  seq: number; time: number; type: string; class: string; manager?: string; managerEvidence?: string; hint?: string;
};
export type ObjectAnswer = Answer & {
  exists?: boolean; object: Ref & { resourceVersion?: string }; yaml: Line[] | null; delta: Delta | null; diff: Change[] | null;
  previous: number | null; next: number | null; command: string;
};
export type Related = Answer & { owners: Ref[] | null; owned: Ref[] | null; ownedTotal?: number; events: Told[] | null; eventsTotal?: number };
export type Row = Ref & {
  seq: number; time: number; type: string; class: string; manager?: string; evidence?: string; changes: Change[] | null; link?: string;
};
export type Changes = Answer & { rows: Row[] | null; next?: string; command: string };
export type Trouble = Answer & {
  items: (Ref & { ref?: Ref; text: string; since: number | null; sinceTime: number | null; firstChange?: (Ref & { seq: number; time: number; text: string }) | null; unknown?: string })[] | null; total: number;
};
export type Compared = Ref & { ref?: Ref; op: string; paths: number; recreated?: boolean };
export type Compare = Answer & {
  counts?: { added: number; removed: number; changed: number; noise: number }; objects?: Compared[] | null; changes?: Change[] | null; next?: string; command: string;
};
export type Step = Answer & { seq: number | null; time: number; object?: Ref | null; next?: number | null };
export type Tail = Answer & { time: number; count: number; recording: Recording; head: string; other: boolean };
export type Instant = Answer & { at: Point };
export type Origin = { seq: number; time: number; type: string; manager?: string; earlier?: boolean; latest?: boolean };
export type Blame = Answer & { object: Ref; lines: { text: string; path: string; folded?: boolean; origin: number }[]; origins: Origin[]; command: string };
export type Happened = Ref & { seq: number; time: number; estimated?: boolean; depth: number; type: string; class: string; manager?: string; event?: { type: string; reason: string; message: string; count: string } | null };
export type Rollout = Ref & {
  start: (Point & { manager?: string }) | null; // null: it began before the window
  end: (Point & { manager?: string }) | null; outcome: string; revision?: string | number;
  troubles?: { reason: string; message: string; objects: unknown }[] | null;
};
export type Story = Answer & { object: Ref; rows: Happened[] | null; more?: number; hidden?: Record<string, number>; rollouts?: Rollout[] | null; command: string };
export type Nearby = Answer & { object: Ref; from: number; to: number; rows: Row[]; rowsTotal: number; others: Row[]; othersTotal: number; unknown?: string; command: string };
export type Session = {
  name: string; cluster: string; path: string; owner?: string; time: string; seq: number; playing: boolean; speed: number; atEnd: boolean;
  watches: number; expires?: string; problem?: string; notes?: string[];
};
