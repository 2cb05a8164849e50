// The window: the times, the instant and the filter of the questions.
import { computed, effect, signal } from "@preact/signals";
import type { Params } from "./api";
import { step } from "./clock";
import { cluster, focus, type Filter } from "./focus";
import { calm, head, learn, listed } from "./live";
import type { Meta, Point } from "./model";
import { query } from "./query";

export type Span = { from: number; to: number };

export const meta = query<Meta>(() => ({ shape: "meta", params: { cluster: cluster.value } }));
effect(() => { const m = meta.answer.value; if (m?.cluster) learn(m.head, m.recording); });

/** whole is the time of the record, from its first delta on. Windows are clamped to it. */
export const whole = computed<Span | null>(() => upTo(head.value));
export function upTo(end: Point | null): Span | null {
  const m = meta.answer.value;
  return m && end && m.first ? { from: m.first.time, to: Math.max(end.time, m.first.time + 1000) } : null;
}

/** live is true while the page follows the end of the record. */
export const live = computed(() => focus.value.at === null && focus.value.last !== null && focus.value.wanted === "");

export const fixed = computed(() => JSON.stringify([focus.value.last, focus.value.from, focus.value.to]));

/** shown is the window of the lanes. A floating window moves in steps of 1/600 of its width, so that not every delta moves all marks. */
export const shown = computed<Span | null>(() => windowOf(whole.value));
export function windowOf(w: Span | null): Span | null {
  const [last, from, to] = JSON.parse(fixed.value) as [number | null, number, number];
  if (!w) return null;
  if (last === null) return { from, to };
  const by = step(last / 600);
  const end = Math.ceil((w.to + 1) / by) * by;
  // If the record is younger than the window, the window begins with the record.
  return { from: Math.max(end - last, Math.floor(w.from / by) * by), to: end };
}

/** cursor is the time of the focused instant; null at the end of the record. */
export const cursor = computed(() => (focus.value.at === null ? null : focus.value.time));
export const scrub = signal<number | null>(null);
export const instant = computed(() => `seq:${focus.value.at ?? head.value?.seq ?? 0}`);
export const calmInstant = computed(() => focus.value.at ?? calm.value?.seq ?? 0), troubled = computed(() => focus.value.at ?? listed.value?.seq ?? 0);

export const filters = computed(() => JSON.stringify([focus.value.filter, cluster.value]));
export function filterParams(): Params {
  const [f, c] = JSON.parse(filters.value) as [Filter, string];
  // Users type a part of a name. The server matches the whole name, unless it has a star.
  return { ...f, name: f.name && !f.name.includes("*") ? `*${f.name}*` : f.name, cluster: c };
}

/** mark returns the state of the record for which an answer about a window holds; "" means for ever, because the window ended before the record does. */
export function mark(to: number, end = head): string {
  const h = end.peek();
  if (h && to <= h.time) return "";
  return String(live.value ? end.value?.seq : head.peek()?.seq);
}

export const stripWidth = signal(0), lanesWidth = signal(0);

/** Width of a bar in pixels; it can be down to half of this. */
const barWidth = 12;
export const barsIn = (width: number) => Math.max(60, Math.floor(width / barWidth));

/** snap moves the edges of a window to whole bars, so that the counts above the lanes belong to the window. */
export function snap(s: Span): Span {
  const by = Math.max(1000, step((s.to - s.from) / barsIn(lanesWidth.peek() || 600)));
  const from = Math.floor(s.from / by) * by, to = Math.ceil(s.to / by) * by;
  return { from, to: Math.max(to, from + by) };
}

/** clamp keeps a window on the record, with a small margin. */
export function clamp(s: Span): Span {
  const w = whole.peek();
  if (!w) return s;
  const room = Math.max(1000, (w.to - w.from) * 0.02), most = w.to - w.from + 2 * room;
  const width = Math.min(Math.max(s.to - s.from, 1000), Math.max(most, 1000));
  const from = Math.min(Math.max(s.from, w.from - room), w.to + room - width);
  return { from, to: from + width };
}

/** settle delays questions until a pan or a zoom rests. The drawing moves at once. */
export const gliding = signal(false);
export const settle = () => (gliding.value ? 120 : 0);

export const hour = 3_600_000;
