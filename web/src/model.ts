// The answers of /timeline/v1, as the server gives them. Columns are arrays of equal length.

export type Incomplete = { from: number; to: number | null; kind: string; stream?: string; cause?: string; text: string };
export type Answer = { seq: number; revision: number; incomplete?: Incomplete[] | null };
export type Ref = { resource: string; kind: string; namespace?: string; name: string; uid?: string };
export type Point = { seq: number; time: number };
export type Recording = { now: boolean; since?: number; behindMs?: number; text: string };
export type Resource = { resource: string; kind: string; namespaced: boolean };

export type Meta = Answer & {
  clusters: { uid: string; name: string }[]; cluster: string; first: Point; head: Point;
  recording: Recording; resources: Resource[]; namespaces: string[];
};
export type Strip = Answer & {
  from: number; to: number; stepMs: number; classes: string[]; counts: number[][]; firstSeq: number[]; lastSeq: number[];
  hidden?: { heartbeat?: number }; next?: string;
};
export type Lane = Ref & {
  id: number; depth: number; owner: number | null; born: number | null; ended: number | null; changes: number; hidden: number; trouble?: string;
};
export type Lanes = Answer & { total: number; lanes: Lane[]; next?: string; hidden?: { heartbeat?: number }; left?: Record<string, number> };
export type Ticks = Answer & {
  from: number; lanes: { id: number; time: number[]; seq: number[]; count: number[]; class: number[]; manager: number[] }[];
  classes: string[]; managers: string[];
};
export type States = Answer & { from: number; lanes: { id: number; from: number[]; to: number[]; state: string[]; text: string[] }[] };
export type Change = { op: string; path: string; old?: unknown; new?: unknown };
export type Line = { text: string; path: string; folded?: boolean; mark?: string };
export type Told = { time: number; type: string; reason: string; message: string; count: number };
export type Delta = {
  seq: number; time: number; type: string; class: string; manager?: string; managerEvidence?: string; hint?: string;
};
export type ObjectAnswer = Answer & {
  object: Ref & { resourceVersion?: string; exists?: boolean }; yaml: Line[] | null; delta: Delta | null; diff: Change[] | null;
  owners: Ref[] | null; owned: Ref[] | null; ownedTotal?: number; events: Told[] | null; previous: number | null; next: number | null; command: string;
};
export type Row = Ref & {
  seq: number; time: number; type: string; class: string; manager?: string; evidence?: string; changes: Change[] | null;
};
export type Changes = Answer & { rows: Row[] | null; next?: string; command: string };
export type Trouble = Answer & {
  items: (Ref & { ref?: Ref; text: string; since: number; sinceTime: number; firstChange?: { seq: number; time: number; text: string } | null })[] | null; total: number;
};
export type Compared = Ref & { ref?: Ref; op: string; paths: number };
export type Compare = Answer & {
  counts?: { added: number; removed: number; changed: number; noise: number }; objects?: Compared[] | null; paths?: Change[] | null; next?: string; command: string;
};
export type Step = Answer & { seq: number | null; time: number };
export type Tail = Answer & { time: number; count: number; recording: Recording };
export type Instant = Answer & { at: Point };
