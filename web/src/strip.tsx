// The density strip over the whole record. Press and drag scrubs; with Shift it selects a window; hover only shows counts.
import { effect, signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { clock, count, full, marks, span } from "./clock";
import { strip } from "./data";
import { lookAt } from "./instant";
import { clamp, cursor, gliding, scrub, shown, snap, stripWidth, whole } from "./window";
import { at, bars, older, paintBars, paintIncomplete } from "./density";
import { focus, move } from "./focus";
import { font, frame, palette, type Palette, Scale, size } from "./paint";

const height = 76, ruler = 18;
const room = 0.012; // margin on both sides, as a part of the record, so that its begin and end are visible

export const stripScale = (): Scale | null => {
  const w = whole.value, width = stripWidth.value;
  if (!w || width === 0) return null;
  const pad = (w.to - w.from) * room;
  return new Scale(w.from - pad, w.to + pad, width);
};

const selected = signal<{ from: number; to: number } | null>(null);

function paint(canvas: HTMLCanvasElement): void {
  const s = stripScale(), p = palette.value;
  if (!s) return;
  const began = performance.now(), c = size(canvas, s.width, height), body = height - ruler;
  c.fillStyle = p.paper;
  c.fillRect(0, 0, s.width, height);
  const answer = strip.answer.value;
  if (answer) paintBars(c, bars(answer), s, 0, body, p, "strip");
  const within = (answer?.incomplete ?? []).filter((i) => i.to === null || i.to > (whole.peek()?.from ?? 0)); // The question begins before the record.
  paintIncomplete(c, within, s, 0, body, p, "strip");
  paintEdges(c, s, body, p);
  paintRuler(c, s, body, p);
  paintWindow(c, s, body, p);
  frame(began);
}

/** paintEdges greys the time before the first delta and after the last one. */
function paintEdges(c: CanvasRenderingContext2D, s: Scale, body: number, p: Palette): void {
  const w = whole.value;
  if (!w) return;
  c.fillStyle = p.rule;
  c.globalAlpha = 0.5;
  c.fillRect(0, 0, s.x(w.from), body);
  c.fillRect(s.x(w.to), 0, s.width - s.x(w.to), body);
  c.globalAlpha = 1;
  c.fillStyle = p.faint;
  c.fillRect(s.x(w.from) - 1, 0, 1, body);
  c.fillRect(s.x(w.to), 0, 1, body);
}

export function paintRuler(c: CanvasRenderingContext2D, s: Scale, y: number, p: Palette): void {
  c.fillStyle = p.rule;
  c.fillRect(0, y, s.width, 1);
  c.textBaseline = "top";
  let free = 0;
  for (const m of marks(s.from, s.to, Math.max(2, s.width / 86))) {
    const x = Math.round(s.x(m.ms));
    c.fillStyle = p.rule;
    c.fillRect(x, y, 1, 5);
    c.font = font(11, m.strong ? 600 : 400);
    const width = c.measureText(m.label).width;
    if (x + 4 < free || x + 4 + width > s.width) continue;
    c.fillStyle = m.strong ? p.ink : p.faint;
    c.fillText(m.label, x + 4, y + 4);
    free = x + width + 12;
  }
}

/** paintWindow frames the window of the lanes, and draws the cursor. */
function paintWindow(c: CanvasRenderingContext2D, s: Scale, body: number, p: Palette): void {
  const seen = selected.value ?? shown.value;
  if (seen) {
    const x = Math.max(0, s.x(seen.from)), w = Math.max(3, Math.min(s.width, s.x(seen.to)) - x);
    c.fillStyle = p.accent;
    c.globalAlpha = 0.13;
    c.fillRect(x, 0, w, body);
    c.globalAlpha = 1;
    c.fillRect(x, body - 2, w, 2);
    c.fillRect(x, 0, w, 2);
    c.fillRect(x, 0, 1, body);
    c.fillRect(x + w - 1, 0, 1, body);
  }
  const time = scrub.value ?? cursor.value;
  if (time !== null) paintCursor(c, s.x(time), 0, height, p);
}

export function paintCursor(c: CanvasRenderingContext2D, x: number, y: number, h: number, p: Palette): void {
  if (x < -1) return;
  c.fillStyle = p.paper;
  c.fillRect(Math.round(x) - 2, y, 4, h);
  c.fillStyle = p.bad;
  c.fillRect(Math.round(x) - 1, y, 2, h);
}

/** usePainted paints a canvas whenever its inputs change, at most once a frame. */
export function usePainted(paintIt: (canvas: HTMLCanvasElement) => void) {
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    let wanted = 0;
    const again = signal(0);
    const stop = effect(() => {
      void again.value;
      if (ref.current) paintIt(ref.current);
    });
    const observer = new ResizeObserver(() => {
      cancelAnimationFrame(wanted);
      wanted = requestAnimationFrame(() => { again.value++; });
    });
    if (ref.current?.parentElement) observer.observe(ref.current.parentElement);
    return () => { stop(); observer.disconnect(); cancelAnimationFrame(wanted); };
  }, []);
  return ref;
}

/** useWidth sets a signal to the width of a box. */
export function useWidth(width: { value: number }, less = () => 0) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = ref.current;
    if (!box) return undefined;
    const measure = () => { width.value = Math.max(0, Math.floor(box.clientWidth - less())); };
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    measure();
    return () => observer.disconnect();
  }, []);
  return ref;
}

export function zoom(by: number, about: number): void {
  const s = shown.peek();
  if (!s) return;
  glide();
  move({ last: null, ...clamp({ from: about - (about - s.from) * by, to: about + (s.to - about) * by }) }, "glide");
}

export function pan(ms: number): void {
  const s = shown.peek();
  if (!s) return;
  glide();
  move({ last: null, ...clamp({ from: s.from + ms, to: s.to + ms }) }, "glide");
}

let resting = 0;
/** glide marks that the window moves. Questions wait until it rests. */
export function glide(): void {
  gliding.value = true;
  clearTimeout(resting);
  resting = setTimeout(rest, 150) as unknown as number;
}

function rest(): void {
  const s = shown.peek();
  if (s && focus.peek().last === null) move(snap(s), "learn");
  gliding.value = false;
}

export function Strip() {
  const hover = useSignal<{ x: number; text: string } | null>(null), box = useWidth(stripWidth), canvas = usePainted(paint);
  const timeOf = (e: PointerEvent | WheelEvent) => stripScale()?.ms(e.clientX - (canvas.current?.getBoundingClientRect().left ?? 0)) ?? 0;
  const down = (e: PointerEvent) => {
    if (e.button !== 0) return;
    canvas.current?.setPointerCapture(e.pointerId);
    const ms = timeOf(e);
    if (e.shiftKey) selected.value = { from: ms, to: ms }; else scrub.value = ms;
  };
  const moved = (e: PointerEvent) => {
    const ms = timeOf(e);
    hover.value = { x: e.clientX, text: read(ms) };
    if (selected.value) selected.value = { from: selected.value.from, to: ms }; else if (scrub.value !== null && e.buttons === 1) scrub.value = ms;
  };
  const up = () => {
    const range = selected.peek(), time = scrub.peek();
    selected.value = null;
    if (range && Math.abs(range.to - range.from) > 0) move({ last: null, ...snap(clamp({ from: Math.min(range.from, range.to), to: Math.max(range.from, range.to) })) });
    else if (time !== null) void lookAt(time);
  };
  const wheel = (e: WheelEvent) => { e.preventDefault(); zoom(Math.exp(e.deltaY / 400), timeOf(e)); };
  useEffect(() => {
    canvas.current?.addEventListener("wheel", wheel, { passive: false });
    return () => canvas.current?.removeEventListener("wheel", wheel);
  }, []);
  return (
    <section class="strip" aria-label="All of the record">
      <div class="strip-box" ref={box}>
        <canvas ref={canvas} class="strip-canvas" height={height} role="img" aria-label={spoken()} onPointerDown={down} onPointerMove={moved}
          onPointerUp={up} onPointerCancel={() => { scrub.value = null; selected.value = null; }} onPointerLeave={() => { hover.value = null; }} />
      </div>
      <p class="strip-note">
        <span class="read">{hover.value?.text ?? spoken()}</span>
        {strip.busy.value && strip.answer.value === null ? <span class="busy">counting…</span> : null}
        {strip.answer.value?.next && strip.answer.value.ahead?.text ? <span class="busy">{strip.answer.value.ahead.text}</span> : null}
        {strip.answer.value?.next ? <span class="busy">not all is counted yet: what is not is hatched</span> : null}
        {strip.failed.value && !strip.missing.value ? <span class="error">{strip.failed.value}</span> : null}
      </p>
    </section>
  );
}

function read(ms: number): string {
  const answer = strip.answer.peek(), bar = answer && at(bars(answer), ms);
  const missing = (answer?.incomplete ?? []).find((i) => ms >= i.from && (i.to === null || ms < i.to));
  const parts = bar ? bar.parts.map(([c, n]) => `${count(n)} ${c}`).join(", ") || "nothing" : "outside of the record";
  return `${full(ms)} · ${parts}${bar ? ` in ${span(bar.to - bar.from)}` : ""}${missing ? ` · ${missing.text}` : ""}`;
}

function spoken(): string {
  const w = whole.value, answer = strip.answer.value;
  if (!w) return "The record is asked for.";
  const total = answer ? bars(answer).total.reduce((a, b) => a + b, 0) : 0, holes = answer?.incomplete?.filter((i) => i.kind !== "before").length ?? 0;
  return `The record: ${full(w.from)} to ${full(w.to).slice(0, 10) === full(w.from).slice(0, 10) ? clock(w.to) : full(w.to)} (${span(w.to - w.from)}), ${count(total)} ${total === 1 ? "change" : "changes"} shown${older(answer) > 0 ? `, ${count(older(answer))} dated before it began` : ""}${holes > 0 ? `, ${holes} ${holes === 1 ? "stretch is" : "stretches are"} not complete` : ", complete"}.`;
}
