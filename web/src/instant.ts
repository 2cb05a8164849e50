// The choice of the instant: by a click, a time, a typed word or a step from change to change.
import { batch, effect, signal } from "@preact/signals";
import { Failure, get, locked, renewed, type Params } from "./api";
import { zoneName } from "./clock";
import { cluster, focus, move, type Focus } from "./focus";
import { back, head } from "./live";
import type { Instant, Ref, Step } from "./model";
import { clamp, filterParams, hour, scrub, shown, snap, whole } from "./window";

export const of = (r: Ref): Partial<Focus> => ({ uid: r.uid ?? "", resource: r.resource, namespace: r.namespace ?? "", name: r.name, panel: "object" });

/** announced is spoken by the live region, and shown for a moment. */
export const announced = signal("");

/** freeze returns the fixed window for a view of the past. It contains the time. */
function freeze(f: Focus, time: number | null): Partial<Focus> {
  const s = shown.peek(), w = whole.peek();
  if (!s || !w || time === null) return {};
  const width = s.to - s.from;
  if (time >= s.from && time < s.to) return f.last === null ? {} : { last: null, from: s.from, to: s.to };
  return { last: null, ...snap(clamp({ from: time - width * 0.7, to: time + width * 0.3 })) };
}

let turn = 0;
/** take begins a new choice of the instant. Answers to older choices are dropped. */
function take(): number {
  scrub.value = null;
  return ++turn;
}
addEventListener("popstate", take);
effect(() => { void cluster.value; take(); });

/** look sets the instant, and optionally the object. */
export function look(at: number, time: number | null, more: Partial<Focus> = {}): void {
  take();
  arrive(at, time, more);
}

function arrive(at: number, time: number | null, more: Partial<Focus>): void {
  move({ ...freeze(focus.peek(), time), at, time, wanted: "", ...more });
}

/** lookAt sets the instant by a time. The server finds its seq. */
export async function lookAt(time: number, more: Partial<Focus> = {}): Promise<void> {
  const w = whole.peek();
  if (!w) return;
  const at = Math.round(Math.min(Math.max(time, w.from + 1), w.to)); // The first delta is a fraction of a millisecond later than its time in ms.
  const mine = batch(() => { const n = take(); scrub.value = at; return n; });
  try {
    const found = await resolve(String(at));
    if (mine === turn) arrive(found.seq, at, more);
  } catch (e) {
    if (mine === turn) announced.value = e instanceof Failure ? e.message : "";
  } finally {
    if (scrub.peek() === at) scrub.value = null; // A new drag may have begun.
  }
}

const resolve = async (at: string, zone?: string) => (await get<Instant>("instant", { at, zone, cluster: focus.peek().cluster })).at;

/** lookAtTyped sets the instant to typed text: 03:12, 10m, yesterday 14:05, seq:7. It returns an error message, or "". */
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

/** carry follows a clock that another tool moved; null is the end of the record. It adds no step of Back. */
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

// An instant of the URL has no time yet, or is not a seq.
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

/** unresolved shows the error, and goes to the end of the record. While the server is unavailable or requires another token, the instant stays. */
function unresolved(e: unknown): void {
  if (!(e instanceof Failure) || locked.peek()) return;
  announced.value = e.message;
  move({ at: null, time: null, wanted: "" }, "learn");
}

type Scope = "object" | "group" | "cluster";
/** A pressed key repeats faster than a server answers. At most this many steps wait. */
const waitingSteps = 10;
let chain = -1, waiting = 0, walks: Promise<void> = Promise.resolve();

/** walk steps to the next or the previous change of the object, of its group, or of all objects in the filter. Each step begins where the last one ended. */
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
    if (found.seq === null) { announced.value = direction === "next" ? "No later change." : "No earlier change."; return; }
    const other = about !== "object" && found.object ? of(found.object) : {};
    arrive(found.seq, found.time, other);
  } catch (e) {
    if (mine === turn) announced.value = e instanceof Failure ? e.message : "";
  }
}

/** find repeats the question until the server finds a step, or has searched the whole record. */
async function find(params: Params, seq: number): Promise<Step> {
  for (let from = seq; ;) {
    const found = await get<Step>("step", { ...params, seq: from });
    if (found.seq !== null || !found.next) return found;
    from = found.next;
  }
}
