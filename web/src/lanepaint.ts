// Lanes on the canvas: life, state, marks. It draws from typed arrays, and only the visible part.
import { compact } from "./clock";
import type { Incomplete, Lane, States, Ticks } from "./model";
import { clip, drawn, font, hatch, hatched, type Palette, type Scale, stamp, stretch, unhatch, wide } from "./paint";

export const row = 26;

export type Marks = { time: Float64Array; seq: Float64Array; count: Uint32Array; class: string[]; manager: string[] };
export type Bars = { from: Float64Array; to: Float64Array; state: string[]; text: string[] };

const marksOf = new WeakMap<Ticks, Map<number, Marks>>(), barsOf = new WeakMap<States, Map<number, Bars>>();

export function marks(t: Ticks | null): Map<number, Marks> {
  let made = t ? marksOf.get(t) : new Map<number, Marks>();
  if (t && !made) {
    made = new Map(t.lanes.map((l) => [l.id, {
      time: Float64Array.from(l.time, (ms) => ms + t.from), seq: Float64Array.from(l.seq), count: Uint32Array.from(l.count),
      class: l.class.map((i) => t.classes[i] ?? ""), manager: l.manager.map((i) => (i < 0 ? "" : (t.managers[i] ?? ""))),
    }]));
    marksOf.set(t, made);
  }
  return made as Map<number, Marks>;
}

export function stateBars(s: States | null): Map<number, Bars> {
  let made = s ? barsOf.get(s) : new Map<number, Bars>();
  if (s && !made) {
    made = new Map(s.lanes.map((l) => [l.id, {
      from: Float64Array.from(l.from, (ms) => ms + s.from), to: Float64Array.from(l.to, (ms) => ms + s.from), state: l.state, text: l.text,
    }]));
    barsOf.set(s, made);
  }
  return made as Map<number, Bars>;
}

export type Scene = {
  lanes: Lane[]; first: number; last: number; top: number; scale: Scale; ticks: Ticks | null; states: States | null; incomplete: Incomplete[]; end: number; active: string; p: Palette;
};

export function paintLanes(c: CanvasRenderingContext2D, s: Scene): void {
  const at = marks(s.ticks), of = stateBars(s.states);
  drawn.marks = [];
  drawn.bars = [];
  drawn.merged = s.ticks?.stepMs ?? 0;
  unhatch("lanes");
  for (let i = s.first; i < Math.min(s.last, s.lanes.length); i++) {
    const lane = s.lanes[i] as Lane, y = i * row - s.top;
    c.fillStyle = s.p.rule;
    c.fillRect(0, y + row - 1, s.scale.width, 1);
    if (lane.uid === s.active) tint(c, y, s);
    life(c, lane, y, s);
    const found = at.get(lane.id);
    states(c, lane, of.get(lane.id), found, y, s);
    unknown(c, lane, y, s);
    ends(c, lane, y, s);
    if (found) ticks(c, lane, found, y, s);
  }
}

function tint(c: CanvasRenderingContext2D, y: number, s: Scene): void {
  c.globalAlpha = 0.12;
  c.fillStyle = s.p.accent;
  c.fillRect(0, y, s.scale.width, row - 1);
  c.globalAlpha = 1;
}

const between = (lane: Lane, s: Scene): [number, number] => [
  lane.born === null ? -1 : Math.max(-1, s.scale.x(lane.born)), Math.min(s.scale.width + 1, s.scale.x(lane.ended ?? s.end)),
];

/** life draws a thin line from birth to end, also if no state is known. */
function life(c: CanvasRenderingContext2D, lane: Lane, y: number, s: Scene): void {
  const [from, to] = between(lane, s);
  if (to < 0 || from > s.scale.width) return;
  c.fillStyle = s.p.rule;
  c.fillRect(from, y + 5, Math.max(2, to - from), row - 11);
}

function states(c: CanvasRenderingContext2D, lane: Lane, b: Bars | undefined, m: Marks | undefined, y: number, s: Scene): void {
  if (!b) return;
  for (let i = 0; i < b.from.length; i++) {
    const x0 = Math.max(-1, s.scale.x(b.from[i] ?? 0)), x1 = Math.min(s.scale.width + 1, s.scale.x(b.to[i] ?? 0)), state = b.state[i] ?? "unknown";
    if (x1 < 0 || x0 > s.scale.width || state === "gone") continue;
    const w = Math.max(state === "bad" ? 2 : 1, x1 - x0), color = s.p[state as "ok" | "progress" | "bad" | "unknown"] ?? s.p.unknown;
    if (state === "unknown") hatch(c, x0, y + 5, w, row - 11, s.p);
    else {
      c.fillStyle = color;
      c.globalAlpha = state === "ok" ? 0.38 : 0.6;
      c.fillRect(x0, y + 5, w, row - 11);
      c.globalAlpha = 1;
      c.fillRect(x0, y + row - 8, w, 2);
    }
    drawn.bars.push({ lane: lane.id, from: b.from[i] ?? 0, to: b.to[i] ?? 0, state, text: b.text[i] ?? "" });
    caption(c, b.text[i] ?? "", x0, x1, y, m, s);
  }
}

const captions = font(10.5), numbers = font(10, 700);

/** caption writes text only where there is no mark, because marks would cover it. */
function caption(c: CanvasRenderingContext2D, text: string, from: number, to: number, y: number, m: Marks | undefined, s: Scene): void {
  if (!text || to - from < 40) return;
  c.font = captions;
  c.textBaseline = "middle";
  const fits = clip(c, text, to - from - 10, captions), width = wide(c, fits, captions);
  let x = Math.max(from, 0) + 5;
  for (let i = 0; m && i < m.time.length; i++) {
    const at = s.scale.x(m.time[i] ?? 0);
    if (at > x - 10 && at < x + width + 10) x = at + 14;
  }
  if (!fits || x + width > to - 3) return;
  c.fillStyle = s.p.ink;
  c.fillText(fits, x, y + row / 2 - 1);
}

/** unknown hatches incomplete stretches of the lane's own stream. It draws nothing before the begin of the record. */
function unknown(c: CanvasRenderingContext2D, lane: Lane, y: number, s: Scene): void {
  for (const i of s.incomplete) {
    if (i.stream ? !covers(i.stream, lane) : i.kind === "before") continue;
    const found = stretch(i, s.scale);
    if (!found) continue;
    hatch(c, found.x, y + 2, found.w, row - 5, s.p);
    hatched("lanes", i, i.stream ? [i.stream] : [], lane.id);
  }
}

/** covers reports whether a stream includes an object. A stream is a resource, or a resource in one namespace. */
export function covers(stream: string, lane: Lane): boolean {
  const [resource, namespace] = stream.split(" in namespace ");
  return resource === lane.resource && (namespace === undefined || namespace === lane.namespace);
}

function ends(c: CanvasRenderingContext2D, lane: Lane, y: number, s: Scene): void {
  c.fillStyle = s.p.ink;
  if (lane.born !== null) { const x = s.scale.x(lane.born); if (x >= 0 && x <= s.scale.width) c.fillRect(Math.round(x), y + 3, 1.5, row - 7); }
  if (lane.ended === null) return;
  const x = Math.round(s.scale.x(lane.ended));
  if (x < 0 || x > s.scale.width) return;
  c.fillRect(x - 1, y + 3, 1.5, row - 7);
}

function ticks(c: CanvasRenderingContext2D, lane: Lane, m: Marks, y: number, s: Scene): void {
  for (let i = 0; i < m.time.length; i++) {
    const time = m.time[i] ?? 0, x = s.scale.x(time), n = m.count[i] ?? 1, kind = m.class[i] ?? "";
    if (x < -10 || x > s.scale.width + 10) continue;
    const color = s.p.class[kind] ?? s.p.faint;
    if (n > 1) pill(c, x, y, n, color, s.p); else shape(c, x, y + row / 2 - 1, kind, color, s.p);
    if (time >= s.scale.from && time < s.scale.to) drawn.marks.push({ lane: lane.id, time, seq: m.seq[i] ?? 0, count: n, class: kind });
  }
}

/** pill draws a merged mark with its count. Every merged mark has a count. */
function pill(c: CanvasRenderingContext2D, x: number, y: number, n: number, color: string, p: Palette): void {
  c.font = numbers;
  const text = compact(n), w = Math.ceil(Math.max(14, wide(c, text, numbers) + 6));
  stamp(c, `${text} ${color}`, x, y + 4, w + 2, row - 9, p, (s) => {
    s.fillStyle = p.paper;
    s.beginPath();
    s.roundRect(0, 0, w + 2, row - 9, 5);
    s.fill();
    s.fillStyle = color;
    s.beginPath();
    s.roundRect(1, 1, w, row - 11, 4);
    s.fill();
    s.fillStyle = p.paper;
    s.font = numbers;
    s.textBaseline = "middle";
    s.textAlign = "center";
    s.fillText(text, w / 2 + 1, row / 2 - 4);
  });
}

/** shape distinguishes the classes without colour: added is a triangle, deleted a cross, an Event a diamond, a status a small bar. */
function shape(c: CanvasRenderingContext2D, x: number, y: number, kind: string, color: string, p: Palette): void {
  const w = 14, h = 20;
  stamp(c, `${kind} ${color}`, x, y - h / 2, w, h, p, (s) => { shapeAt(s, w / 2, h / 2, kind, color, p); });
}

function shapeAt(c: OffscreenCanvasRenderingContext2D, x: number, y: number, kind: string, color: string, p: Palette): void {
  c.beginPath();
  switch (kind) {
    case "added": c.moveTo(x - 5, y + 5); c.lineTo(x, y - 6); c.lineTo(x + 5, y + 5); break;
    case "event": c.moveTo(x, y - 6); c.lineTo(x + 5, y); c.lineTo(x, y + 6); c.lineTo(x - 5, y); break;
    case "deleted": cross(c, x, y, color, p); return;
    case "status": case "heartbeat": c.rect(x - 1.5, y - 5, 3, 10); break;
    default: c.rect(x - 3, y - 8, 6, 16);
  }
  c.closePath();
  c.lineWidth = 2;
  c.strokeStyle = p.paper;
  c.stroke();
  c.fillStyle = color;
  c.fill();
}

function cross(c: OffscreenCanvasRenderingContext2D, x: number, y: number, color: string, p: Palette): void {
  c.moveTo(x - 4, y - 5); c.lineTo(x + 4, y + 5); c.moveTo(x + 4, y - 5); c.lineTo(x - 4, y + 5);
  c.lineWidth = 5;
  c.strokeStyle = p.paper;
  c.stroke();
  c.lineWidth = 2.5;
  c.strokeStyle = color;
  c.stroke();
}

/** nearest returns the mark of a lane near a pixel, if there is one. */
export function nearest(m: Marks | undefined, s: Scale, x: number): number {
  let found = -1, away = 11;
  for (let i = 0; m && i < m.time.length; i++) {
    const d = Math.abs(s.x(m.time[i] ?? 0) - x);
    if (d < away) [found, away] = [i, d];
  }
  return found;
}

/** stateAt returns the text of a lane's bar at a time. */
export function stateAt(b: Bars | undefined, ms: number): string {
  for (let i = 0; b && i < b.from.length; i++) if (ms >= (b.from[i] ?? 0) && ms < (b.to[i] ?? 0)) return b.text[i] || b.state[i] || "";
  return "";
}
