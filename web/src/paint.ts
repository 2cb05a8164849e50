// Painting code of the strip and the lanes: theme colours, the scale, hatching, and the list of what was drawn.
import { signal } from "@preact/signals";
import type { Incomplete } from "./model";

export type Palette = Record<"ink" | "faint" | "rule" | "paper" | "accent" | "hatch" | "ok" | "progress" | "bad" | "gone" | "unknown", string> & { class: Record<string, string> };

const names = ["ink", "faint", "rule", "paper", "accent", "hatch", "ok", "progress", "bad", "gone", "unknown"] as const;
const classNames = ["change", "added", "deleted", "status", "event", "sync", "heartbeat"];

/** palette reads the style sheet, so that canvas and panels have the same colours. */
export const palette = signal<Palette>(read());

function read(): Palette {
  const style = getComputedStyle(document.documentElement), of = (name: string) => style.getPropertyValue(`--${name}`).trim() || "#888";
  return { ...Object.fromEntries(names.map((n) => [n, of(n)])), class: Object.fromEntries(classNames.map((n) => [n, of(`c-${n}`)])) } as Palette;
}

export type Theme = "auto" | "dark" | "light";
export const theme = signal<Theme>((stored() as Theme) || "auto");

function stored(): string {
  try { return localStorage.getItem("kuberewind.theme") ?? ""; } catch { return ""; }
}

export function setTheme(to: Theme): void {
  theme.value = to;
  document.documentElement.dataset.theme = to;
  try { localStorage.setItem("kuberewind.theme", to); } catch { /* It holds for this tab. */ }
  palette.value = read();
}

document.documentElement.dataset.theme = theme.peek();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { palette.value = read(); });
// The style sheet may come after the script.
addEventListener("load", () => { palette.value = read(); });

/** Scale maps a window to pixels. */
export class Scale {
  constructor(readonly from: number, readonly to: number, readonly width: number) {}
  x(ms: number): number { return ((ms - this.from) / (this.to - this.from)) * this.width; }
  ms(x: number): number { return this.from + (x / this.width) * (this.to - this.from); }
}

/** size fits a canvas to its box, and returns a context whose unit is a CSS pixel. */
export function size(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = devicePixelRatio || 1, w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const c = canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  return c;
}

export const font = (px: number, weight = 400) => `${weight} ${px}px system-ui, sans-serif`;

/** Marks are drawn once and then copied: without a GPU, slanted and round edges take most of a frame. All stamps belong to one theme and one resolution. */
let stamps = new Map<string, ImageBitmap>(), hatching: CanvasPattern | null = null, stampsOf: Palette | null = null, stampsAt = 0;
const mostStamps = 2000;

function renew(p: Palette, ratio: number): void {
  if (stampsOf === p && stampsAt === ratio && stamps.size < mostStamps) return;
  [stamps, hatching, stampsOf, stampsAt] = [new Map(), null, p, ratio];
}

/** drawnOnce draws a picture of the given size in screen pixels. */
function drawnOnce(width: number, height: number, ratio: number, draw: (c: OffscreenCanvasRenderingContext2D) => void): ImageBitmap {
  const canvas = new OffscreenCanvas(width, height), c = canvas.getContext("2d") as OffscreenCanvasRenderingContext2D;
  c.scale(ratio, ratio);
  draw(c);
  return canvas.transferToImageBitmap();
}

/** stamp copies a small drawing with its middle at x. Within a palette and a resolution, a key names one drawing. */
export function stamp(c: CanvasRenderingContext2D, key: string, x: number, y: number, width: number, height: number, p: Palette, draw: (c: OffscreenCanvasRenderingContext2D) => void): void {
  const ratio = devicePixelRatio || 1;
  renew(p, ratio);
  let image = stamps.get(key);
  if (!image) stamps.set(key, (image = drawnOnce(Math.ceil(width * ratio), Math.ceil(height * ratio), ratio, draw)));
  const whole = (at: number) => Math.round(at * ratio) / ratio; // An image between two pixels would be blurred.
  c.drawImage(image, whole(x - width / 2), whole(y), image.width / ratio, image.height / ratio);
}

/** Distance of the hatching's lines in pixels. */
const hatchStep = 7;

/** hatch draws an incomplete stretch. The time before the record has no hatching: it is empty, with an edge. */
export function hatch(c: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, p: Palette): void {
  const ratio = devicePixelRatio || 1;
  renew(p, ratio);
  if (!hatching) {
    const pixels = Math.round(hatchStep * ratio), step = pixels / ratio; // Whole screen pixels; otherwise tiles would not join.
    const tile = drawnOnce(pixels, pixels, ratio, (t) => {
      t.globalAlpha = 0.18;
      t.fillStyle = p.hatch;
      t.fillRect(0, 0, step, step);
      t.globalAlpha = 0.75;
      t.strokeStyle = p.hatch;
      t.beginPath();
      for (let at = 0; at <= 2 * step; at += step) {
        t.moveTo(at - 2 * step, 2 * step);
        t.lineTo(at + step, -step);
      }
      t.stroke();
    });
    hatching = c.createPattern(tile, "repeat") as CanvasPattern;
    hatching.setTransform(new DOMMatrix().scale(1 / ratio));
  }
  c.fillStyle = hatching;
  c.fillRect(x, y, Math.max(w, 2), h);
}

const widths = new Map<string, number>();

/** wide returns the width of a text in a font, which the canvas must have set. */
export function wide(c: CanvasRenderingContext2D, text: string, of: string): number {
  const key = of + text;
  let known = widths.get(key);
  if (known === undefined) {
    if (widths.size > 10 * mostStamps) widths.clear();
    widths.set(key, (known = c.measureText(text).width));
  }
  return known;
}

/** stretch returns the pixels of an incomplete stretch, or null if it is outside the window. A stretch that ends where the window begins is outside. */
export function stretch(i: Incomplete, s: Scale): { x: number; w: number } | null {
  const end = i.to ?? Infinity, point = end === i.from;
  if (point ? end < s.from || end > s.to : end <= s.from || i.from >= s.to) return null;
  const from = Math.max(0, s.x(i.from)), to = Math.min(s.width, s.x(end));
  return { x: from, w: Math.max(2, to - from) };
}

/** clip shortens a text to a width in a font, which the canvas must have set. */
export function clip(c: CanvasRenderingContext2D, text: string, width: number, of: string): string {
  if (wide(c, text, of) <= width) return text;
  let n = text.length;
  while (n > 1 && wide(c, text.slice(0, n) + "…", of) > width) n = Math.floor(n * 0.9);
  return n > 1 ? text.slice(0, n) + "…" : "";
}

// The content of the canvas, for tests that compare it with the record by SQL.
export type Drawn = {
  strip: { from: number; to: number; counts: Record<string, number> }[]; density: { from: number; to: number; counts: Record<string, number> }[];
  marks: { lane: number; time: number; seq: number; count: number; class: string }[];
  bars: { lane: number; from: number; to: number; state: string; text: string }[]; hatched: Hatched[];
  merged: number; // ms: changes of a lane in one such step are one mark
  frames: number[];
};
/** Hatched is an incomplete stretch that was drawn: of some streams, or of all if none is named. Only the view "lanes" has a lane. */
export type Hatched = { view: string; lane?: number; from: number; to: number | null; kind: string; streams: string[] };
export const drawn: Drawn = { strip: [], density: [], marks: [], bars: [], hatched: [], merged: 0, frames: [] };

export const unhatch = (view: string) => { drawn.hatched = drawn.hatched.filter((h) => h.view !== view); };

export function hatched(view: string, i: Incomplete, streams: string[], lane?: number): void {
  drawn.hatched.push({ view, lane, from: i.from, to: i.to, kind: i.kind, streams });
}

/** frame records how long the script of a frame took, for the last 600 frames. */
export function frame(began: number): void {
  drawn.frames.push(performance.now() - began);
  if (drawn.frames.length > 600) drawn.frames.shift();
}
