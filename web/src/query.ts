// A query follows what it depends on: it aborts what is stale, and the old answer stays on the screen until the new one is here.
import { batch, effect, signal, type Signal } from "@preact/signals";
import { admitted, Failure, get, renewed, type Params } from "./api";
import type { Answer } from "./model";

/** Asked is one question. Pages follow the cursor next so often, and add joins their answers. What is joined is shown at once. The views
 * follow the record without waiting for what is asked aside. took is told how many milliseconds an answer took, unless it was kept or is
 * an error. ended is told how many passed until the last answer, or the refusal. What is like the question before has an answer on the screen: the new
 * one is shown when it was counted to the end. An answer that was not counted to the end is asked for again after rest. */
export type Asked<T> = { shape: string; params: Params; mark?: string; wait?: number; aside?: boolean; pages?: number; add?: (a: T, b: T) => T; took?: (ms: number) => void; ended?: (ms: number) => void; like?: string; rest?: () => Promise<void> };
export type Query<T> = { answer: Signal<T | null>; asked: Signal<Asked<T> | null>; failed: Signal<string>; missing: Signal<boolean>; busy: Signal<boolean> };

let running = 0, drawing = 0;
/** idle reports whether all questions have their answers. */
export const idle = () => running === 0;
/** drawn reports whether those of the views have. */
export const drawn = () => drawing === 0;

/** begins counts a question, until what it returns is called. */
function begins(aside = false): () => void {
  const views = aside ? 0 : 1;
  running++;
  drawing += views;
  return () => { running--; drawing -= views; };
}

/** query asks whenever what ask reads has changed. Without a question, there is no answer. */
export function query<T extends Answer>(ask: () => Asked<T> | null): Query<T> {
  const q: Query<T> = { answer: signal(null), asked: signal(null), failed: signal(""), missing: signal(false), busy: signal(false) };
  effect(() => {
    const asked = ask();
    void renewed.value;
    if (!asked || !admitted.value) return drop(q);
    const controller = new AbortController();
    const ends = begins(asked.aside);
    let begun = false;
    const begin = () => {
      if (controller.signal.aborted) return;
      begun = true;
      void run(q, asked, controller.signal).finally(ends);
    };
    // Without a wait, the question goes out before the page is drawn anew: the server works meanwhile.
    let timer = 0;
    if (asked.wait) timer = setTimeout(begin, asked.wait); else queueMicrotask(begin);
    return () => {
      clearTimeout(timer);
      if (!begun) ends();
      controller.abort();
    };
  });
  return q;
}

function drop<T>(q: Query<T>): undefined {
  q.answer.value = q.asked.value = null;
  q.failed.value = "";
  q.busy.value = false;
}

async function run<T extends Answer>(q: Query<T>, asked: Asked<T>, aborted: AbortSignal): Promise<void> {
  const began = performance.now(), like = asked.like !== undefined && q.asked.peek()?.like === asked.like && whole(q.answer.peek());
  q.busy.value = true;
  try {
    for await (const answer of all(asked, aborted, like)) {
      if (aborted.aborted) return;
      batch(() => {
        q.asked.value = asked;
        q.failed.value = "";
        q.missing.value = false;
        q.answer.value = answer;
      });
    }
  } catch (e) {
    // A question that the network failed stays busy: it is asked again when the server answers again.
    if (aborted.aborted || !(e instanceof Failure)) return;
    refused(q, e);
  }
  if (aborted.aborted) return;
  q.busy.value = false;
  asked.ended?.(performance.now() - began);
}

/** whole reports whether an answer was counted to the end. */
const whole = (answer: (Answer & { older?: string }) | null) => answer !== null && !answer.older;

/** all gives what is shown, one after the other. An answer that was not counted to the end is asked for again, and is shown when it is as long as before. */
async function* all<T extends Answer & { next?: string; older?: string }>(asked: Asked<T>, aborted: AbortSignal, like: boolean): AsyncGenerator<T> {
  const ask = (cursor: string | undefined) => get<T>(asked.shape, { ...asked.params, cursor }, aborted, asked.mark, asked.took);
  for (let older: string | undefined, again = false; older || !again; again = true) {
    if (again) await asked.rest?.();
    let answer = await ask(older);
    if (!again && !like) yield answer;
    for (let page = 1; page < (asked.pages ?? 1) && asked.add && answer.next; page++) {
      answer = asked.add(answer, await ask(answer.next));
      if (!again && !like) yield answer;
    }
    if (like ? !answer.older : again) yield answer;
    older = answer.older;
  }
}

/** refused keeps no answer: what the server does not say any more is not shown. */
function refused<T>(q: Query<T>, e: Failure): void {
  q.missing.value = e.code === 404;
  q.failed.value = e.message;
  q.answer.value = null;
}
