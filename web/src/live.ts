// The end of the record: one request each 500 ms while the tab is visible. No stream is held.
import { signal } from "@preact/signals";
import { get, locked } from "./api";
import { focus } from "./focus";
import type { Point, Recording, Tail } from "./model";
import { idle } from "./query";

export const head = signal<Point | null>(null);
/** calm follows head at most each ten seconds: for answers that cost much. */
export const calm = signal<Point | null>(null);
export const recording = signal<Recording | null>(null);
/** fresh counts what was recorded since the user began to look at the past. */
export const fresh = signal(0);

const every = 500, away = 2000, patience = 3000, slow = 10_000;
let since: number | null = null, published = 0, calmed = 0;

export function learn(point: Point, said: Recording): void {
  recording.value = said;
  publish(point);
}

/** publish moves the views, unless they wait for answers: a slow server is not asked anew before it answered. */
function publish(point: Point): void {
  const now = performance.now();
  const known = head.peek();
  if (known?.seq === point.seq || (known && !idle() && now - published < patience)) return;
  published = now;
  head.value = point;
  if (now - calmed > slow || calm.peek() === null) {
    calmed = now;
    calm.value = point;
  }
}

/** follow asks until the tab is closed. */
export async function follow(): Promise<void> {
  for (;;) {
    const began = performance.now(), worked = document.visibilityState !== "visible" || locked.peek() !== "" || (await look());
    const rest = (worked ? every : away) - (performance.now() - began);
    await new Promise((done) => setTimeout(done, Math.max(50, rest)));
  }
}

async function look(): Promise<boolean> {
  const known = head.peek(), f = focus.peek();
  if (!known) return true;
  if (f.at === null) since = null; else since ??= known.seq;
  try {
    const tail = await get<Tail>("tail", { after: since ?? known.seq, cluster: f.cluster }, AbortSignal.timeout(5000));
    recording.value = tail.recording;
    if (since === null) publish({ seq: tail.seq, time: tail.time });
    fresh.value = since === null ? 0 : tail.count;
    return true;
  } catch {
    return false;
  }
}

/** back forgets what is new: the views go to the end of the record. */
export function back(): void {
  since = null;
  fresh.value = 0;
}
