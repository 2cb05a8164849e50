// A query repeats its question when its inputs change. It aborts the old request, and shows the old answer until the new one arrives.
import { batch, effect, signal, type Signal } from "@preact/signals";
import { admitted, Failure, get, renewed, type Params } from "./api";
import type { Answer } from "./model";

/** Asked is one question. The query requests pages by the cursor next, at most pages of them, and add joins their answers. Joined answers are shown at once.
 * aside: the views follow the record without waiting for this question. took receives the duration of an answer in ms, unless it was cached or is an
 * error. ended receives the duration until the last answer or the refusal in ms. like: if the previous question has the same value, its answer stays on
 * the screen until the new one is counted completely. If an answer was not counted completely, the query repeats the question after rest. */
export type Asked<T> = { shape: string; params: Params; mark?: string; wait?: number; aside?: boolean; pages?: number; add?: (a: T, b: T) => T; took?: (ms: number) => void; ended?: (ms: number) => void; like?: string; rest?: () => Promise<void> };
export type Query<T> = { answer: Signal<T | null>; asked: Signal<Asked<T> | null>; failed: Signal<string>; missing: Signal<boolean>; busy: Signal<boolean> };

let running = 0, drawing = 0;
/** idle reports whether all questions have been answered. */
export const idle = () => running === 0;
/** drawn reports whether all questions of the views have been answered. */
export const drawn = () => drawing === 0;

/** begins counts a question until its result is called. */
function begins(aside = false): () => void {
  const views = aside ? 0 : 1;
  running++;
  drawing += views;
  return () => { running--; drawing -= views; };
}

/** query sends a question whenever the inputs of ask change. Without a question, there is no answer. */
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
    // Without a wait, send the question before the page is drawn again, so that the server works meanwhile.
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
    // If the network failed, the question stays busy, and is repeated when the server answers again.
    if (aborted.aborted || !(e instanceof Failure)) return;
    refused(q, e);
  }
  if (aborted.aborted) return;
  q.busy.value = false;
  asked.ended?.(performance.now() - began);
}

/** whole reports whether an answer was counted completely. */
const whole = (answer: (Answer & { older?: string }) | null) => answer !== null && !answer.older;

/** all yields the answers to show, one after the other. If an answer was not counted completely, all repeats the question. It shows the new answer when it is as long as the old one. */
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

/** refused removes the answer, because the server does not confirm it any more. */
function refused<T>(q: Query<T>, e: Failure): void {
  q.missing.value = e.code === 404;
  q.failed.value = e.message;
  q.answer.value = null;
}
