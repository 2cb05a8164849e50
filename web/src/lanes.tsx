// The lanes of the window: a treegrid of real rows, next to the canvas. Rows are virtual; aria-rowindex has their numbers.
import { computed, effect, signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { changeOfOffset, count, full, span, zone } from "./clock";
import { chosenUid, density, grouping, lanes, page, pages, sorting, states, ticks, visible } from "./data";
import { look, lookAt, of } from "./instant";
import { cursor, lanesWidth, live, scrub, shown, whole } from "./window";
import { at, bars, older, paintBars, paintIncomplete } from "./density";
import { filter, move } from "./focus";
import { covers, marks, nearest, paintLanes, row, stateAt, stateBars } from "./lanepaint";
import type { Incomplete, Lane } from "./model";
import { font, frame, palette, Scale, size } from "./paint";
import { paintCursor, paintRuler, pan, usePainted, useWidth, zoom } from "./strip";

const top = signal(0), tall = signal(300);
export const active = signal(0);
export const hover = signal("");
const labels = () => (innerWidth < 760 ? 156 : 290);
const headHeight = 58, ruler = 18;

const scale = (): Scale | null => {
  const s = shown.value;
  return s && lanesWidth.value > 0 ? new Scale(s.from, s.to, lanesWidth.value) : null;
};
const list = computed<Lane[]>(() => lanes.answer.value?.lanes ?? []);
const first = computed(() => Math.max(0, Math.floor(top.value / row) - 3));
const last = computed(() => Math.min(list.value.length, Math.ceil((top.value + tall.value) / row) + 3));

// Ticks are requested in blocks of rows, so that short scrolling sends no question.
const block = 20;
effect(() => {
  const from = Math.floor(first.value / block) * block, to = Math.ceil(last.value / block) * block;
  visible.value = list.value.slice(from, to).map((l) => l.id).join(",");
});

const incomplete = (): Incomplete[] => density.answer.value?.incomplete ?? lanes.answer.value?.incomplete ?? [];
/** ofLanes returns the incomplete stretches of all lanes. The bars above belong to the filter's resources, but owners of other resources are lanes, too. */
const ofLanes = (): Incomplete[] => ticks.answer.value?.incomplete ?? lanes.answer.value?.incomplete ?? [];

function paint(canvas: HTMLCanvasElement): void {
  const s = scale(), p = palette.value;
  if (!s) return;
  const began = performance.now(), c = size(canvas, s.width, tall.value);
  c.fillStyle = p.paper;
  c.fillRect(0, 0, s.width, tall.value);
  const end = whole.value?.to ?? s.to;
  paintLanes(c, {
    lanes: list.value, first: first.value, last: last.value, top: top.value, scale: s, ticks: ticks.answer.value, states: states.answer.value,
    incomplete: ofLanes(), end, active: chosenUid.value, p,
  });
  const time = scrub.value ?? cursor.value;
  if (time !== null && time >= s.from && time <= s.to) paintCursor(c, s.x(time), 0, tall.value, p);
  frame(began);
}

function paintHead(canvas: HTMLCanvasElement): void {
  const s = scale(), p = palette.value;
  if (!s) return;
  const c = size(canvas, s.width, headHeight), body = headHeight - ruler, answer = density.answer.value;
  c.fillStyle = p.paper;
  c.fillRect(0, 0, s.width, headHeight);
  if (answer) paintBars(c, bars(answer), s, 0, body, p, "density");
  paintIncomplete(c, incomplete(), s, 0, body, p, "density");
  paintRuler(c, s, body, p);
  const moved = changeOfOffset(s.from, s.to);
  if (moved !== null) {
    c.fillStyle = p.progress;
    c.fillRect(s.x(moved), 0, 1, headHeight);
    c.font = font(10, 600);
    c.fillText(`${zone(s.from)} → ${zone(s.to)}`, s.x(moved) + 4, 2);
  }
  const time = scrub.value ?? cursor.value;
  if (time !== null && time >= s.from && time <= s.to) paintCursor(c, s.x(time), 0, headHeight, p);
}

/** lives numbers the lives of one name, in the order of their births. */
const lives = computed(() => {
  const same = new Map<string, Lane[]>();
  for (const l of list.value) {
    const name = `${l.resource} ${l.namespace ?? ""} ${l.name}`, known = same.get(name);
    if (known) known.push(l); else same.set(name, [l]);
  }
  const numbers = new Map<number, string>();
  for (const some of same.values()) if (some.length > 1) {
    some.sort((a, b) => (a.born ?? 0) - (b.born ?? 0)).forEach((l, i) => numbers.set(l.id, `life ${i + 1} of ${some.length}`));
  }
  return numbers;
});

export function Lanes() {
  const width = useWidth(lanesWidth, labels), head = usePainted(paintHead), body = usePainted(paint), scroller = useRef<HTMLDivElement>(null);
  const onHead = useMemo(() => handlers(head, false), []), onBody = useMemo(() => handlers(body, true), []);
  useEffect(() => {
    const box = scroller.current as HTMLDivElement, observer = new ResizeObserver(() => { tall.value = box.clientHeight; });
    observer.observe(box);
    const wheel = (e: WheelEvent) => spin(e, body.current as HTMLCanvasElement);
    box.addEventListener("wheel", wheel, { passive: false });
    return () => { observer.disconnect(); box.removeEventListener("wheel", wheel); };
  }, []);
  const answer = lanes.answer.value, rest = (answer?.total ?? 0) - list.value.length;
  return (
    <section class="lanes" aria-label="Objects in the window">
      <div class="lanes-head" ref={width}>
        <Order />
        <canvas ref={head} class="lanes-density" role="img" aria-label="Changes in the window" {...onHead} />
      </div>
      <div class="lanes-body" ref={scroller} onScroll={() => { top.value = scroller.current?.scrollTop ?? 0; }}>
        <div class="lanes-stick"><canvas ref={body} class="lanes-canvas" aria-hidden="true" {...onBody} /></div>
        <Rows />
        {rest > 0 ? <button type="button" class="more" onClick={() => { pages.value++; }}>{count(rest)} more {rest === 1 ? "object" : "objects"}: show {count(Math.min(page, rest))} of them</button> : null}
        <Left />
        {answer && answer.total === 0 ? <p class="empty">No object changed in this window{live.value ? " so far" : ""}, by this filter. Widen the window with −, or press 0 for all of the record.</p> : null}
        {lanes.failed.value ? <p class="error">{lanes.failed.value}</p> : null}
      </div>
      <Reading />
    </section>
  );
}

/** Reading is a component of its own, because it changes with each move of the window. */
function Reading() {
  return <p class="read" aria-hidden="true">{hover.value || hint()}</p>;
}

/** Left counts objects without lanes, such as Events, which have little meaning alone. A click on a count shows their lanes. */
function Left() {
  const left = Object.entries(lanes.answer.value?.left ?? {}).filter(([, n]) => n > 0);
  if (left.length === 0) return null;
  return <p class="left">Not drawn as lanes: {left.map(([resource, n]) => <button type="button" class="more" key={resource} onClick={() => filter({ resource: [resource] })}>{count(n)} {resource}</button>)}</p>;
}

const hint = () => {
  const s = shown.value, before = older(density.answer.value);
  return s ? `${full(s.from)} to ${full(s.to)} (${span(s.to - s.from)}).${before > 0 ? ` ${count(before)} ${before === 1 ? "change is" : "changes are"} dated before the record began.` : ""} Drag scrubs, Ctrl+wheel zooms, Shift+drag moves.` : "";
};

function Order() {
  const total = lanes.answer.value?.total;
  return (
    <div class="order">
      <strong>{total === undefined ? "…" : count(total)} {total === 1 ? "object" : "objects"}</strong>
      <span class="choices">
        <select aria-label="Group by" value={grouping.value} onChange={(e) => move({ group: e.currentTarget.value })}>
          <option value="owner">by owner</option><option value="node">by node</option><option value="none">ungrouped</option>
        </select>
        <select aria-label="Sort by" value={sorting.value} onChange={(e) => move({ sort: e.currentTarget.value })}>
          <option value="changes">most changes</option><option value="trouble">trouble first</option><option value="name">by name</option>
        </select>
      </span>
    </div>
  );
}

function Rows() {
  const all = list.value, from = first.value, to = last.value, answer = lanes.answer.value;
  return (
    <div role="treegrid" class="rows" aria-label="Objects" aria-rowcount={answer?.total ?? -1} style={{ height: `${all.length * row}px` }} onKeyDown={keys}>
      {all.slice(from, to).map((l, i) => <Row key={l.id} lane={l} index={from + i} />)}
    </div>
  );
}

function Row({ lane, index }: { lane: Lane; index: number }) {
  const chosen = lane.uid === chosenUid.value, now = cursor.value ?? whole.value?.to ?? 0, state = stateAt(stateBars(states.answer.value).get(lane.id), now);
  const life = lives.value.get(lane.id), name = lane.name, split = name.length > 16 ? name.length - 9 : name.length;
  return (
    <div role="row" class={`row${chosen ? " chosen" : ""}${lane.trouble ? " trouble" : ""}`} aria-rowindex={index + 1} aria-level={lane.depth + 1} aria-selected={chosen}
      tabIndex={index === active.value ? 0 : -1} data-index={index} data-lane={lane.id} style={{ top: `${index * row}px`, "--depth": Math.min(lane.depth, 4) }}
      title={`${lane.kind} ${lane.namespace ? lane.namespace + "/" : ""}${lane.name}${life ? `, ${life}` : ""}${lane.trouble ? `: ${lane.trouble}` : ""}`}
      onClick={() => { active.value = index; move(of(lane)); }} onFocus={() => { active.value = index; }}>
      <span role="rowheader" class="name"><span class="kind">{lane.kind}</span><span class="start">{name.slice(0, split)}</span><span class="end">{name.slice(split)}</span>
        {life ? <span class="life">{life}</span> : null}{lane.depth === 0 || grouping.value !== "owner" ? <span class="space">{lane.namespace}</span> : null}</span>
      <span role="gridcell" class="number" title={lane.hidden > 0 ? `${count(lane.hidden)} hidden by the filter` : undefined}>{count(lane.changes)}<span class="unseen"> changes{lane.hidden > 0 ? `, ${count(lane.hidden)} hidden` : ""}</span></span>
      <span role="gridcell" class="unseen">{state}{lane.trouble ? `, ${lane.trouble}` : ""}{lane.ended !== null ? ", ended" : ""}</span>
    </div>
  );
}

/** goTo moves to a row, and scrolls it into view. */
export function goTo(index: number): void {
  const i = Math.min(Math.max(0, index), list.peek().length - 1), box = document.querySelector<HTMLElement>(".lanes-body");
  if (i < 0 || !box) return;
  active.value = i;
  if (i * row < box.scrollTop) box.scrollTop = i * row;
  if ((i + 1) * row > box.scrollTop + box.clientHeight) box.scrollTop = (i + 1) * row - box.clientHeight;
  top.value = box.scrollTop;
  requestAnimationFrame(() => document.querySelector<HTMLElement>(`.row[data-index="${i}"]`)?.focus({ preventScroll: true }));
}

function keys(e: KeyboardEvent): void {
  const to = ({ ArrowDown: active.value + 1, ArrowUp: active.value - 1, Home: 0, End: list.value.length - 1, PageDown: active.value + 10, PageUp: active.value - 10 } as Record<string, number>)[e.key];
  const lane = list.value[active.value];
  if (to !== undefined && !e.altKey && !e.ctrlKey && !e.metaKey) goTo(to);
  else if ((e.key === "Enter" || e.key === " ") && lane) move(of(lane));
  else return;
  e.preventDefault();
  e.stopPropagation();
}

function spin(e: WheelEvent, canvas: HTMLCanvasElement): void {
  const s = scale();
  if (!s || (!e.ctrlKey && !e.metaKey && !e.shiftKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY))) return;
  e.preventDefault();
  if (e.ctrlKey || e.metaKey) zoom(Math.exp(e.deltaY / 300), s.ms(e.clientX - canvas.getBoundingClientRect().left));
  else pan(((e.shiftKey && e.deltaX === 0 ? e.deltaY : e.deltaX) / s.width) * (s.to - s.from));
}

/** handlers make a canvas scrub on drag, pan on Shift and drag, and open on click. */
function handlers(canvas: { current: HTMLCanvasElement | null }, rows: boolean) {
  let began = 0, was = 0, how: "" | "press" | "scrub" | "pan" = "";
  const x = (e: PointerEvent) => e.clientX - (canvas.current?.getBoundingClientRect().left ?? 0);
  const laneAt = (e: PointerEvent) => (rows ? list.peek()[Math.floor((e.clientY - (canvas.current?.getBoundingClientRect().top ?? 0) + top.peek()) / row)] : undefined);
  return {
    onPointerDown: (e: PointerEvent) => {
      if (e.button !== 0) return;
      canvas.current?.setPointerCapture(e.pointerId);
      [began, was, how] = [x(e), x(e), e.shiftKey ? "pan" : "press"];
    },
    onPointerMove: (e: PointerEvent) => {
      const s = scale(), now = x(e);
      if (!s) return;
      if (how === "press" && Math.abs(now - began) > 4) how = "scrub";
      if (how === "scrub") scrub.value = s.ms(Math.min(Math.max(0, now), s.width));
      if (how === "pan") { pan(-((now - was) / s.width) * (s.to - s.from)); was = now; }
      hover.value = read(laneAt(e), s, now);
    },
    onPointerUp: (e: PointerEvent) => {
      const s = scale(), done = how, time = scrub.peek();
      how = "";
      if (!s) return;
      if (done === "scrub" && time !== null) void lookAt(time);
      if (done === "press") open(laneAt(e), s, x(e));
    },
    onPointerCancel: () => { how = ""; scrub.value = null; },
    onPointerLeave: () => { hover.value = ""; },
    onDblClick: (e: MouseEvent) => { const s = scale(); if (s) zoom(0.33, s.ms(x(e as PointerEvent))); },
  };
}

/** open goes to a mark exactly, or to the time if no mark is near. */
function open(lane: Lane | undefined, s: Scale, x: number): void {
  const m = lane && marks(ticks.answer.peek()).get(lane.id), i = nearest(m, s, x);
  if (lane) active.value = list.peek().indexOf(lane);
  if (m && i >= 0) look(m.seq[i] ?? 0, m.time[i] ?? null, lane ? of(lane) : {});
  else void lookAt(s.ms(x), lane ? of(lane) : {});
}

function read(lane: Lane | undefined, s: Scale, x: number): string {
  const time = s.ms(x);
  if (!lane) {
    const answer = density.answer.peek(), bar = answer && at(bars(answer), time);
    return bar ? `${full(bar.from)} · ${bar.parts.map(([c, n]) => `${count(n)} ${c}`).join(", ") || "nothing"} in ${span(bar.to - bar.from)}` : full(time);
  }
  const who = `${lane.kind} ${lane.namespace ? lane.namespace + "/" : ""}${lane.name}`, m = marks(ticks.answer.peek()).get(lane.id), i = nearest(m, s, x);
  if (m && i >= 0) {
    const n = m.count[i] ?? 1, by = m.manager[i];
    return `${full(m.time[i] ?? 0)} · ${who} · ${n > 1 ? `${count(n)} changes, ${m.class[i]} among them` : m.class[i]}${by ? ` by ${by}` : ""} · seq:${m.seq[i]}`;
  }
  const state = stateAt(stateBars(states.answer.peek()).get(lane.id), time), hole = ofLanes().find((g) => (!g.stream || covers(g.stream, lane)) && time >= g.from && (g.to === null || time < g.to));
  return `${full(time)} · ${who}${state ? ` · ${state}` : ""}${hole ? ` · ${hole.text}` : ""}`;
}
