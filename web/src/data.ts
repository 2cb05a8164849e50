// What the views show: the window on the clock, and the questions that follow the focus.
import { batch, computed, effect, signal } from "@preact/signals";
import { Failure, get, locked, renewed, type Params } from "./api";
import { cluster, focus, latest, move, type Filter, type Focus } from "./focus";
import { step, zoneName } from "./clock";
import { back, calm, costs, head, laned, lanesAsked, lanesTook, learn, listed, past } from "./live";
import type { Blame, Changes, Compare, Incomplete, Instant, Lane, Lanes, Meta, Nearby, ObjectAnswer, Point, Ref, Related, States, Step, Story, Strip, Ticks, Trouble } from "./model";
import { query, type Query } from "./query";

export type Span = { from: number; to: number };

export const meta = query<Meta>(() => ({ shape: "meta", params: { cluster: cluster.value } }));
effect(() => { const m = meta.answer.value; if (m?.cluster) learn(m.head, m.recording); });

/** whole is the record, from its first delta on. Everything is clamped there. */
export const whole = computed<Span | null>(() => upTo(head.value));
function upTo(end: Point | null): Span | null {
  const m = meta.answer.value;
  return m && end && m.first ? { from: m.first.time, to: Math.max(end.time, m.first.time + 1000) } : null;
}

/** live is true while the page follows the end of the record. */
export const live = computed(() => focus.value.at === null && focus.value.last !== null && focus.value.wanted === "");

const fixed = computed(() => JSON.stringify([focus.value.last, focus.value.from, focus.value.to]));

/** shown is the window of the lanes. One that floats moves in steps of a six-hundredth, so that not each delta moves all marks. */
export const shown = computed<Span | null>(() => windowOf(whole.value));
function windowOf(w: Span | null): Span | null {
  const [last, from, to] = JSON.parse(fixed.value) as [number | null, number, number];
  if (!w) return null;
  if (last === null) return { from, to };
  const by = step(last / 600);
  const end = Math.ceil((w.to + 1) / by) * by;
  // A record that is younger than the window fills it: nobody looks at a time before it.
  return { from: Math.max(end - last, Math.floor(w.from / by) * by), to: end };
}

/** cursor is the time of the focused instant; null while the end of the record is looked at. */
export const cursor = computed(() => (focus.value.at === null ? null : focus.value.time));
export const scrub = signal<number | null>(null);
export const instant = computed(() => `seq:${focus.value.at ?? head.value?.seq ?? 0}`);
const calmInstant = computed(() => focus.value.at ?? calm.value?.seq ?? 0), troubled = computed(() => focus.value.at ?? listed.value?.seq ?? 0);

const filters = computed(() => JSON.stringify([focus.value.filter, cluster.value]));
export function filterParams(): Params {
  const [f, c] = JSON.parse(filters.value) as [Filter, string];
  // People type a part of a name; the server takes it whole, unless it has a star.
  return { ...f, name: f.name && !f.name.includes("*") ? `*${f.name}*` : f.name, cluster: c };
}

/** mark says up to where an answer about a window holds: for good if the window ended before the record does. */
function mark(to: number, end = head): string {
  const h = end.peek();
  if (h && to <= h.time) return "";
  return String(live.value ? end.value?.seq : head.peek()?.seq);
}

export const stripWidth = signal(0), lanesWidth = signal(0);

/** A strip that takes long comes in slices. What is not counted yet is a stretch of each answer but the last. */
const slices = { pages: 10_000, add: summed };

/** Each slice tells only of the lost days and the damaged versions that it met itself. */
const met = (i: Incomplete) => i.kind === "pruned" || i.kind === "damaged";

function summed(a: Strip, b: Strip): Strip {
  const counts = a.counts.map((c, k) => c.map((n, i) => n + (b.counts[k]?.[i] ?? 0))), told = b.incomplete ?? [], before = (a.incomplete ?? []).filter(met);
  const incomplete = [...told, ...before.filter((i) => !told.some((known) => known.from === i.from && known.text === i.text))];
  const first = a.ahead ? { ahead: a.ahead } : {}; // it speaks of all, and later ones of what was left
  const older = Object.fromEntries(a.classes.map((c) => [c, (a.before[c] ?? 0) + (b.before[c] ?? 0)]));
  return { ...b, ...first, counts, incomplete, before: older, hidden: { ...b.hidden, heartbeat: (a.hidden?.heartbeat ?? 0) + (b.hidden?.heartbeat ?? 0) } };
}

/** A bar is so many pixels wide, or up to half as many. */
const barWidth = 12;
const barsIn = (width: number) => Math.max(60, Math.floor(width / barWidth));

export const strip = query<Strip>(() => {
  const w = whole.value, bars = barsIn(stripWidth.value);
  if (!w || stripWidth.value === 0) return null;
  const by = live.value ? step((w.to - w.from) / bars) : 1, to = Math.ceil((w.to + 1) / by) * by;
  return { shape: "strip", params: { ...filterParams(), from: 0, to, bars }, mark: mark(to), wait: 30, ...slices };
});

/** begun is true once the strip and the marks of the lanes are there, or cannot be had, or took long. They are what is looked at first. The counts above the
 * lanes, the states, older lanes, the overview and the tail wait until then. */
export const begun = signal(false);
const long = 3000, there = computed(() => whole.value !== null);
const untilBegun = () => new Promise<void>((done) => { const stop = effect(() => { if (begun.value || !there.value) queueMicrotask(() => { stop(); done(); }); }); });

export const density = query<Strip>(() => {
  const s = shown.value;
  if (!s || lanesWidth.value === 0 || !begun.value) return null;
  return { shape: "strip", params: { ...filterParams(), from: Math.round(s.from), to: Math.round(s.to), bars: barsIn(lanesWidth.value) }, mark: mark(s.to), wait: settle(), ...slices };
});

/** snap moves the edges of a window to whole bars, so that the counts above the lanes are those of the window. */
export function snap(s: Span): Span {
  const by = Math.max(1000, step((s.to - s.from) / barsIn(lanesWidth.peek() || 600)));
  const from = Math.floor(s.from / by) * by, to = Math.ceil(s.to / by) * by;
  return { from, to: Math.max(to, from + by) };
}

/** settle waits until a pan or a zoom rests; what is drawn moves at once all the same. */
export const gliding = signal(false);
const settle = () => (gliding.value ? 120 : 0);

export const page = 100;
export const pages = signal(1);
const order = computed(() => JSON.stringify([focus.value.group, focus.value.sort]));
effect(() => { void filters.value; void order.value; pages.value = 1; });
/** counted is the window of the lanes and their states. While the page follows the record, it rests until the lanes are counted. */
const counted = computed<Span | null>(() => (live.value ? windowOf(upTo(laned.value)) : shown.value)), countedTo = () => (live.value ? laned : head);
export const lanes: Query<Lanes> = query<Lanes>(() => {
  const s = counted.value, [group, sort] = JSON.parse(order.value) as string[];
  if (!s) return null;
  if (live.value) lanesAsked();
  const like = JSON.stringify([order.value, filters.value, fixed.value, pages.value, renewed.value]);
  const follows = live.value ? { like, aside: lanes.answer.peek() !== null, ended: lanesTook } : {};
  const params = { ...filterParams(), from: Math.round(s.from), to: Math.round(s.to), group, sort, limit: page };
  return { shape: "lanes", params, mark: mark(s.to, countedTo()), wait: settle(), pages: pages.value, add: (a, b) => ({ ...b, lanes: [...a.lanes, ...b.lanes] }), rest: untilBegun, ...follows };
});

/** visible are the lanes on the screen, as a text, so that scrolling within them asks nothing. */
export const visible = signal("");
/** Ticks nearer than this many pixels are one mark with their count. */
export const apart = 20;
/** year is the longest step in which the server merges ticks. */
const year = 365 * 86_400_000;

/** padded is the window and half as much on both sides, in whole steps: panning a little asks nothing new. */
function padded(s: Span, by: number): { from: number; to: number } {
  const half = (s.to - s.from) / 2;
  return { from: Math.max(0, Math.floor((s.from - half) / by) * by), to: Math.min(latest, Math.ceil((s.to + half) / by) * by) };
}

export const ticks = query<Ticks>(() => {
  const s = shown.value, ids = visible.value;
  if (!s || !ids || lanesWidth.value === 0) return null;
  const stepMs = Math.min(year, step(((s.to - s.from) / lanesWidth.value) * apart)), p = padded(s, stepMs);
  return { shape: "ticks", params: { ...filterParams(), lanes: ids, ...p, stepMs }, mark: mark(p.to), wait: settle() || 20 };
});

export const states = query<States>(() => {
  const s = counted.value, ids = visible.value;
  if (!s || !ids || !begun.value) return null;
  const p = padded(s, step((s.to - s.from) / 100));
  return { shape: "states", params: { cluster: cluster.value, lanes: ids, ...p }, mark: mark(p.to, countedTo()), wait: settle() || 60, aside: live.value };
});

const come = <T>(q: Query<T>) => q.answer.value !== null || q.failed.value !== "";
const marked = () => (lanes.answer.value?.lanes.length ?? 0) === 0 || lanesWidth.value === 0 || come(ticks);
effect(() => {
  begun.value = false;
  const timer = there.value ? setTimeout(() => { begun.value = true; }, long) : undefined;
  return () => clearTimeout(timer);
});
effect(() => { if (there.value && (stripWidth.value === 0 || come(strip)) && come(lanes) && marked()) begun.value = true; });

export const panel = computed(() => focus.value.panel), tab = computed(() => focus.value.tab);
const subject = computed(() => JSON.stringify([focus.value.uid, focus.value.resource, focus.value.namespace, focus.value.name]));
function subjectParams(): Params | null {
  const [uid, resource, namespace, name] = JSON.parse(subject.value) as string[];
  if (uid) return { uid, cluster: cluster.value };
  return name ? { resource, namespace, name, cluster: cluster.value } : null;
}

export const object = query<ObjectAnswer>(() => {
  const of = subjectParams();
  return of && head.value && focus.value.wanted === "" ? { shape: "object", params: { ...of, at: instant.value }, mark: "" } : null;
});
// A link names an object by its name; the answer has the UID, which is what an object is.
effect(() => {
  const found = object.answer.value?.object, f = focus.peek();
  if (found?.uid && !f.uid && f.name === found.name) move({ uid: found.uid, resource: found.resource, namespace: found.namespace ?? "" }, "learn");
});

/** related is what belongs to the object that is shown: it is asked for when that is there. */
export const related = query<Related>(() => {
  const uid = object.answer.value?.object.uid, at = object.asked.value?.params.at;
  if (!uid || subjectParams()?.uid !== uid || panel.value !== "object" || tab.value !== "change") return null;
  return { shape: "related", params: { uid, cluster: cluster.value, at }, mark: "" };
});

/** blame says of each line of the YAML which version set it. */
export const blame = query<Blame>(() => {
  const of = subjectParams();
  return of && head.value && panel.value === "object" && tab.value === "blame" ? { shape: "blame", params: { ...of, at: instant.value }, mark: "" } : null;
});

/** story is what happened in the window to the object, and to what belongs to it. */
export const story = query<Story>(() => {
  const of = subjectParams(), s = shown.value;
  if (!of || !s || panel.value !== "object" || tab.value !== "story") return null;
  return { shape: "story", params: { ...of, from: Math.round(s.from), to: Math.round(s.to) }, mark: mark(s.to), wait: settle() };
});

/** nearby is what changed around the object in the hour before the instant. At the end of the record it follows slowly: it looks at the whole namespace. */
export const nearby = query<Nearby>(() => {
  const of = subjectParams();
  if (!of || calmInstant.value === 0 || focus.value.wanted !== "" || panel.value !== "object" || tab.value !== "nearby") return null;
  return { shape: "nearby", params: { ...of, at: `seq:${calmInstant.value}` }, mark: "" };
});

const joined = (a: Changes, b: Changes): Changes => ({ ...b, rows: [...(a.rows ?? []), ...(b.rows ?? [])] });
export const morePages = signal(1);
effect(() => { void filters.value; void subject.value; void panel.value; void tab.value; morePages.value = 1; });

/** versions are all changes of the name, in all of its lives; heartbeats too, since each is a version. */
export const versions = query<Changes>(() => {
  const of = subjectParams(), w = whole.value, found = object.answer.value?.object;
  if (!of || !w || panel.value !== "object" || tab.value !== "versions" || !found?.uid) return null;
  const params = { cluster: cluster.value, resource: found.resource, namespace: found.namespace, name: found.name, from: w.from, to: w.to + 1, limit: 100, class: ["change", "added", "deleted", "status", "event", "sync", "heartbeat"] };
  return { shape: "changes", params, mark: mark(w.to + 1), pages: morePages.value, add: joined };
});

export const changes = query<Changes>(() => {
  const s = shown.value;
  if (!s || panel.value !== "changes") return null;
  return { shape: "changes", params: { ...filterParams(), from: Math.round(s.from), to: Math.round(s.to), limit: 100 }, mark: mark(s.to), pages: morePages.value, add: joined, wait: settle() };
});

/** These are parts of the focus: what reads them is not made anew while the window moves. */
export const chosenUid = computed(() => focus.value.uid), grouping = computed(() => focus.value.group), sorting = computed(() => focus.value.sort);
export const filtering = computed(() => focus.value.filter), lastWidth = computed(() => focus.value.last), chosenAt = computed(() => focus.value.at);
const hourEnd = computed(() => (focus.value.at === null ? calm.value?.time : focus.value.time));

export const hour = 3_600_000;
/** lastHour is the hour that ends at the instant. */
export const lastHour = computed<Span | null>(() => {
  const w = whole.value, at = hourEnd.value;
  return w && at ? { from: Math.max(w.from, at - hour), to: at + 1 } : null;
});
export const recent = query<Changes>(() => {
  const h = lastHour.value;
  if (!h || panel.value !== "now" || !begun.value) return null;
  return { shape: "changes", params: { ...filterParams(), from: h.from, to: h.to, limit: 30, class: recentClasses() }, mark: "", aside: true };
});
export const recentCount = query<Strip>(() => {
  const h = lastHour.value;
  return h && panel.value === "now" && begun.value ? { shape: "strip", params: { ...filterParams(), from: h.from, to: h.to, bars: 60 }, mark: "", aside: true, ...slices } : null;
});
/** recentClasses leaves out what controllers say of their state, unless the filter asks: first what was changed. */
const recentClasses = () => { const chosen = (JSON.parse(filters.value) as [Filter])[0].class; return chosen.length > 0 ? chosen : ["change", "added", "deleted"]; };

export const trouble = query<Trouble>(() => {
  const seq = troubled.value;
  if (panel.value !== "now" || seq === 0 || !begun.value) return null;
  return { shape: "trouble", params: { cluster: cluster.value, at: `seq:${seq}` }, mark: "", aside: true, ...(past.value ? {} : { took: costs }) };
});

export const base = computed(() => focus.value.base);
export const compare = query<Compare>(() => {
  if (panel.value !== "compare" || base.value === null || !head.value) return null;
  const { namespace, resource } = filterParams();
  return { shape: "compare", params: { a: `seq:${base.value}`, b: instant.value, namespace, resource, cluster: cluster.value }, mark: "" };
});
export const opened = signal("");
export const compared = query<Compare>(() => {
  if (panel.value !== "compare" || base.value === null || !opened.value) return null;
  return { shape: "compare", params: { a: `seq:${base.value}`, b: instant.value, uid: opened.value, cluster: cluster.value }, mark: "" };
});

/** freeze gives the window that holds while the past is looked at, with the time in it. */
function freeze(f: Focus, time: number | null): Partial<Focus> {
  const s = shown.peek(), w = whole.peek();
  if (!s || !w || time === null) return {};
  const width = s.to - s.from;
  if (time >= s.from && time < s.to) return f.last === null ? {} : { last: null, from: s.from, to: s.to };
  return { last: null, ...snap(clamp({ from: time - width * 0.7, to: time + width * 0.3 })) };
}

/** clamp keeps a window on the record, with a little room around it. */
export function clamp(s: Span): Span {
  const w = whole.peek();
  if (!w) return s;
  const room = Math.max(1000, (w.to - w.from) * 0.02), most = w.to - w.from + 2 * room;
  const width = Math.min(Math.max(s.to - s.from, 1000), Math.max(most, 1000));
  const from = Math.min(Math.max(s.from, w.from - room), w.to + room - width);
  return { from, to: from + width };
}

export const of = (r: Ref): Partial<Focus> => ({ uid: r.uid ?? "", resource: r.resource, namespace: r.namespace ?? "", name: r.name, panel: "object" });

let turn = 0;
/** take begins a new choice of the instant. An answer to an older choice is dropped. */
function take(): number {
  scrub.value = null;
  return ++turn;
}
addEventListener("popstate", take);
effect(() => { void cluster.value; take(); });

/** look sets the instant, and perhaps the object with it. */
export function look(at: number, time: number | null, more: Partial<Focus> = {}): void {
  take();
  arrive(at, time, more);
}

function arrive(at: number, time: number | null, more: Partial<Focus>): void {
  move({ ...freeze(focus.peek(), time), at, time, wanted: "", ...more });
}

/** lookAt sets the instant by a time: the server knows its seq. */
export async function lookAt(time: number, more: Partial<Focus> = {}): Promise<void> {
  const w = whole.peek();
  if (!w) return;
  const at = Math.round(Math.min(Math.max(time, w.from + 1), w.to)); // The first delta is a part of a millisecond later than it says.
  const mine = batch(() => { const n = take(); scrub.value = at; return n; });
  try {
    const found = await resolve(String(at));
    if (mine === turn) arrive(found.seq, at, more);
  } catch (e) {
    if (mine === turn) told.value = e instanceof Failure ? e.message : "";
  } finally {
    if (scrub.peek() === at) scrub.value = null; // A new drag may have begun.
  }
}

const resolve = async (at: string, zone?: string) => (await get<Instant>("instant", { at, zone, cluster: focus.peek().cluster })).at;

/** lookAtTyped sets the instant to what a person typed: 03:12, 10m, yesterday 14:05, seq:7. The error is a sentence; "" is none. */
export async function lookAtTyped(text: string): Promise<string> {
  const mine = take();
  try {
    const found = await resolve(text, zoneName());
    if (mine === turn) arrive(found.seq, found.time, {});
    return "";
  } catch (e) {
    return e instanceof Failure ? e.message : "The server does not answer.";
  }
}

/** carry goes where another tool moved a clock; null is the end of the record. It is no step of Back. */
export function carry(at: number | null, time: number): void {
  if (at === null) return now();
  take();
  move({ ...freeze(focus.peek(), time), at, time, wanted: "" }, "learn");
}

/** now goes to the end of the record, and follows it. */
export function now(): void {
  const s = shown.peek();
  take();
  back();
  move({ at: null, time: null, wanted: "", last: s ? Math.round((s.to - s.from) / 1000) * 1000 : hour, from: 0, to: 0 });
}

// An instant of the URL has no time yet, or is no seq.
effect(() => {
  const f = focus.value, unknown = f.wanted || (f.at !== null && f.time === null ? `seq:${f.at}` : "");
  void renewed.value;
  if (!unknown || !whole.value) return;
  const still = () => { const g = focus.peek(); return g.cluster === f.cluster && g.wanted === f.wanted && g.at === f.at; };
  void resolve(unknown).then(
    (p) => { if (still()) move({ at: p.seq, time: p.time, wanted: "", ...freeze(focus.peek(), p.time) }, "learn"); },
    (e: unknown) => { if (still()) unresolved(e); },
  );
});

/** unresolved says why, and goes on at the end of the record. The instant is kept while the server is away or wants another token. */
function unresolved(e: unknown): void {
  if (!(e instanceof Failure) || locked.peek()) return;
  told.value = e.message;
  move({ at: null, time: null, wanted: "" }, "learn");
}

type Scope = "object" | "group" | "cluster";
/** A key that is held down repeats faster than a server answers. So many steps may wait. */
const waitingSteps = 10;
let chain = -1, waiting = 0, walks: Promise<void> = Promise.resolve();

/** walk steps to the next or the previous change of the object, of its group, or of all that the filter shows. Each step begins where the last ended. */
export function walk(direction: "next" | "previous", scope?: Scope): void {
  if (chain !== turn) {
    chain = take();
    walks = Promise.resolve();
    waiting = 0;
  }
  if (waiting === waitingSteps) return;
  waiting++;
  const mine = chain;
  walks = walks.then(async () => {
    if (mine === turn) await stride(mine, direction, scope);
    if (mine === chain) waiting--;
  });
}

async function stride(mine: number, direction: "next" | "previous", scope?: Scope): Promise<void> {
  const f = focus.peek(), seq = f.at ?? head.peek()?.seq, about = scope ?? (f.uid ? "object" : "cluster");
  if (seq === undefined || (f.at === null && direction === "next")) return;
  const uid = about === "cluster" ? undefined : f.uid, whose = about === "cluster" ? {} : { namespace: undefined, resource: undefined, name: undefined };
  try {
    const found = await find({ ...filterParams(), ...whose, direction, scope: about, uid }, seq);
    if (mine !== turn) return;
    if (found.seq === null) { told.value = direction === "next" ? "No later change." : "No earlier change."; return; }
    const other = about !== "object" && found.object ? of(found.object) : {};
    arrive(found.seq, found.time, other);
  } catch (e) {
    if (mine === turn) told.value = e instanceof Failure ? e.message : "";
  }
}

/** find asks on while the server has not looked at all that there is. */
async function find(params: Params, seq: number): Promise<Step> {
  for (let from = seq; ;) {
    const found = await get<Step>("step", { ...params, seq: from });
    if (found.seq !== null || !found.next) return found;
    from = found.next;
  }
}

/** told is spoken by the live region, and shown for a moment. */
export const told = signal("");

/** laneOf finds a lane that is loaded. */
export const laneOf = (uid: string): Lane | undefined => lanes.answer.peek()?.lanes.find((l) => l.uid === uid);
