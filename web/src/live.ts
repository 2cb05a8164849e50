// The end of the record: one request every 500 ms while the tab is visible. The page holds no stream.
import { batch, computed, effect, signal } from "@preact/signals";
import { away, get, locked, renewed, setBack } from "./api";
import { cluster, focus } from "./focus";
import type { Point, Recording, Tail } from "./model";
import { drawn, idle } from "./query";

export const head = signal<Point | null>(null);
/** calm follows head at most every ten seconds, and at once after a view of the past. It is for answers about an hour or a namespace. */
export const calm = signal<Point | null>(null);
/** listed follows head for the list of troubles. It pauses for ten times the duration of the last list, from ten seconds to two minutes. */
export const listed = signal<Point | null>(null);
/** laned follows head for the lanes and their states. It pauses for twice the duration of the last count of the lanes. Marks do not wait for it. */
export const laned = signal<Point | null>(null);
export const recording = signal<Recording | null>(null);
/** stopped is true if the record does not follow its cluster. Then the end of the record is not the present. */
export const stopped = computed(() => recording.value !== null && !recording.value.now);
/** fresh counts the deltas recorded since the user began to look at the past. */
export const fresh = signal(0);

const every = 500, later = 2000, patience = 3000, slow = 10_000, slowest = 120_000, longest = 600_000;
let since: number | null = null, published = 0, calmed = 0, asked = 0, pause = slow, lanesRest = 0;
/** chain is the last seen commit, with its digest. If the record does not have it any more, the record was restored from an older copy. */
let chain = "";

/** costs sets the pause from the duration of the list of troubles in milliseconds. */
export function costs(ms: number): void { pause = Math.min(slowest, Math.max(slow, 10 * ms)); }

/** lanesAsked notes that the lanes are being counted. If a count does not end, the next one starts after longest. */
export function lanesAsked(): void { lanesRest = performance.now() + longest; }

/** lanesTook notes that the count of the lanes has ended or failed, with its duration in milliseconds. */
export function lanesTook(ms: number): void { lanesRest = performance.now() + Math.min(slowest, 2 * ms); }

export function learn(point: Point, said: Recording): void {
  recording.value = said;
  publish(point);
}

/** publish moves the views, unless they wait for answers: a slow server gets no new question before it has answered. */
function publish(point: Point): void {
  const now = performance.now(), known = head.peek(), quiet = idle();
  const waits = known && (known.seq === point.seq || (!drawn() && now - published < patience));
  if (!waits) {
    published = now;
    head.value = point;
  }
  follows(head.peek(), now, quiet);
}

/** follows moves calm, laned and listed. While answers are pending, listed waits for at most two minutes. It is also called without a new delta: the last delta may
 * have come too early. */
function follows(point: Point | null, now: number, quiet: boolean): void {
  if (!point) return;
  if (due(calm.peek(), point, now - calmed > slow)) {
    calmed = now;
    calm.value = point;
  }
  if (due(laned.peek(), point, now > lanesRest)) laned.value = point;
  if (due(listed.peek(), point, now - asked > (quiet ? pause : slowest))) {
    asked = now;
    listed.value = point;
  }
}

const due = (is: Point | null, next: Point, rested: boolean) => is === null || (rested && is.seq !== next.seq);

/** follow asks until the tab is closed. It asks for the tail once shown is true. */
export async function follow(shown: () => boolean): Promise<void> {
  for (;;) {
    const began = performance.now(), worked = document.visibilityState !== "visible" || locked.peek() !== "" || (await look(shown));
    const rest = (worked ? every : later) - (performance.now() - began);
    await new Promise((done) => setTimeout(done, Math.max(50, rest)));
  }
}

async function look(shown: () => boolean): Promise<boolean> {
  const known = head.peek(), f = focus.peek();
  if (!known) return begin();
  if (!shown()) return true;
  if (f.at === null) since = null; else since ??= known.seq;
  try {
    const tail = await get<Tail>("tail", { after: since ?? known.seq, head: chain, cluster: f.cluster }, AbortSignal.timeout(5000));
    if (cluster.peek() !== f.cluster) return true;
    recording.value = tail.recording;
    chain = tail.head;
    if (tail.other) begun(tail);
    if (since === null) publish({ seq: tail.seq, time: tail.time });
    fresh.value = since === null ? 0 : tail.count;
    return true;
  } catch {
    return false;
  }
}

/** begun goes on with a record that was restored. */
function begun(tail: Tail): void {
  if (since !== null) since = tail.seq;
  batch(() => { head.value = calm.value = listed.value = laned.value = { seq: tail.seq, time: tail.time }; });
  setBack();
}

/** begin repeats all questions if the server was unavailable before it sent a head. */
function begin(): boolean {
  if (away.peek() && idle()) renewed.value++;
  return away.peek() === "";
}

/** back resets fresh, and the views go to the end of the record. */
export function back(): void {
  since = null;
  fresh.value = 0;
}

export const past = computed(() => focus.value.at !== null);
// head rests during a view of the past. After it, calm moves with head at once, and so do the lanes of a window that ends with the record.
const floats = computed(() => focus.value.at === null && focus.value.last !== null);
effect(() => { if (!past.value) calmed = -Infinity; });
effect(() => { if (floats.value) lanesRest = -Infinity; });

// All state belongs to one cluster.
effect(() => {
  void cluster.value;
  chain = "";
  batch(() => { head.value = calm.value = listed.value = laned.value = recording.value = null; });
  back();
});
