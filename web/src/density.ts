// Bars of counts, stacked by class: the strip over the whole record, and the one above the lanes.
import type { Incomplete, Strip } from "./model";
import { clip, drawn, font, hatch, hatched, type Palette, type Scale, stretch, unhatch, wide } from "./paint";

/** Bars has the columns of a strip, as typed arrays outside the reactive graph. */
export type Bars = { from: number; stepMs: number; classes: string[]; counts: Float64Array[]; total: Float64Array; most: number };

const made = new WeakMap<Strip, Bars>();

export function bars(s: Strip): Bars {
  const known = made.get(s);
  if (known) return known;
  const counts = s.counts.map((c) => Float64Array.from(c)), n = counts.reduce((most, c) => Math.max(most, c.length), 0), total = new Float64Array(n);
  for (const c of counts) for (let i = 0; i < c.length; i++) total[i] = (total[i] ?? 0) + (c[i] ?? 0);
  const b = { from: s.from, stepMs: s.stepMs, classes: s.classes, counts, total, most: total.reduce((most, v) => Math.max(most, v), 0) };
  made.set(s, b);
  return b;
}

/** older returns the number of changes that are in no bar: a list found them, and their dates are before the record. */
export const older = (s: Strip | null) => Object.values(s?.before ?? {}).reduce((a, b) => a + b, 0);

/** at returns the bar at a time, with its counts by class, for the hover text. */
export function at(b: Bars, ms: number): { from: number; to: number; total: number; parts: [string, number][] } | null {
  const i = Math.floor((ms - b.from) / b.stepMs);
  if (i < 0 || i >= b.total.length) return null;
  const parts = b.classes.map((c, k): [string, number] => [c, b.counts[k]?.[i] ?? 0]).filter(([, n]) => n > 0);
  return { from: b.from + i * b.stepMs, to: b.from + (i + 1) * b.stepMs, total: b.total[i] ?? 0, parts };
}

/** paintBars draws heights by the square root, so that one change is visible next to ten thousand. */
export function paintBars(c: CanvasRenderingContext2D, b: Bars, s: Scale, y: number, height: number, p: Palette, view: "strip" | "density"): void {
  const list: (typeof drawn)["strip"] = [], scale = b.most > 0 ? (height - 2) / Math.sqrt(b.most) : 0;
  for (let i = 0; i < b.total.length; i++) {
    const total = b.total[i] ?? 0, from = b.from + i * b.stepMs, x0 = s.x(from), x1 = s.x(from + b.stepMs);
    if (total === 0 || x1 < 0 || x0 > s.width) continue;
    paintBar(c, b, i, x0, Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 1 : 0)), y + height, Math.max(2, Math.sqrt(total) * scale), p);
    list.push({ from, to: from + b.stepMs, counts: Object.fromEntries(b.classes.map((k, n) => [k, b.counts[n]?.[i] ?? 0])) });
  }
  drawn[view] = list;
}

function paintBar(c: CanvasRenderingContext2D, b: Bars, i: number, x: number, w: number, bottom: number, height: number, p: Palette): void {
  const total = b.total[i] ?? 1;
  for (let k = 0, y = bottom; k < b.classes.length; k++) {
    const n = b.counts[k]?.[i] ?? 0;
    if (n === 0) continue;
    const h = Math.max(1, (n / total) * height);
    c.fillStyle = p.class[b.classes[k] ?? ""] ?? p.faint;
    c.fillRect(x, y - h, w, h);
    y -= h;
  }
}

const kindText: Record<string, string> = { gap: "gap", pause: "pause", pruned: "pruned", estimated: "times estimated", clockstep: "clock step", unread: "not counted yet", before: "before the record" };

/** paintIncomplete hatches incomplete stretches, and labels them if there is room. If only some resources are incomplete, it draws a lower band. */
export function paintIncomplete(c: CanvasRenderingContext2D, all: Incomplete[], s: Scale, y: number, height: number, p: Palette, view: string): void {
  unhatch(view);
  for (const g of grouped(all.filter((i) => stretch(i, s) !== null))) {
    const { x, w } = stretch(g.one, s) as { x: number; w: number }, part = g.streams.length > 0 ? height * 0.45 : height;
    hatch(c, x, y + height - part, w, part, p);
    hatched(view, g.one, g.streams);
    label(c, g, x, w, y + height - part, p);
  }
}

export type Group = { one: Incomplete; streams: string[] };

/** grouped joins incomplete stretches of several resources with the same cause and time. */
export function grouped(all: Incomplete[]): Group[] {
  const found = new Map<string, Group>();
  for (const i of all) {
    if (i.kind === "before" && !i.stream) continue;
    const key = [i.kind, i.cause, i.stream ? "" : i.text, Math.round(i.from / 1000), i.to === null ? "" : Math.round(i.to / 1000)].join(" "), g = found.get(key) ?? { one: i, streams: [] };
    if (i.stream) g.streams.push(i.stream);
    found.set(key, g);
  }
  return [...found.values()];
}

const labels = font(10, 600);

function label(c: CanvasRenderingContext2D, g: Group, x: number, w: number, y: number, p: Palette): void {
  if (w < 34) return;
  c.font = labels;
  const text = clip(c, [kindText[g.one.kind] ?? g.one.kind, g.streams.length > 1 ? `of ${g.streams.length} resources` : (g.streams[0] ?? "")].filter(Boolean).join(" "), w - 8, labels);
  if (!text) return;
  const width = wide(c, text, labels);
  c.fillStyle = p.paper;
  c.globalAlpha = 0.8;
  c.fillRect(x + 2, y + 2, width + 4, 13);
  c.globalAlpha = 1;
  c.fillStyle = p.ink;
  c.textBaseline = "top";
  c.fillText(text, x + 4, y + 3);
}
