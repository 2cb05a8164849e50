// Blame, story and neighbourhood of the object: who set each line, what happened to it and to what belongs to it, and what changed around it.
import { useSignal } from "@preact/signals";
import { brief, count, full } from "./clock";
import { blame, nearby, story } from "./data";
import { look, of } from "./instant";
import { whole } from "./window";
import type { Origin, Ref } from "./model";
import { Rows } from "./rows";
import { Class, Command, named, Section, When, Writer } from "./parts";

/** ofThis returns no answer while there is only an answer about another object, whose writers would appear under this object's name. */
const ofThis = <T extends { object: Ref }>(answer: T | null, uid?: string) => (answer?.object.uid === uid ? answer : null);

/** Blamed shows the version that set each line next to the YAML. A click goes there. */
export function Blamed({ uid, at }: { uid?: string; at?: number }) {
  const answer = ofThis(blame.answer.value, uid);
  if (!answer) return blame.failed.value ? <p class="error">{blame.failed.value}</p> : <p class="busy">The versions are folded…</p>;
  const lines = answer.lines.filter((l) => !l.folded), folded = answer.lines.length - lines.length;
  return (
    <>
      <pre class="blame" tabIndex={0} aria-label="YAML with the version that set each line">{lines.map((l, i) => {
        const origin = answer.origins[l.origin], same = i > 0 && lines[i - 1]?.origin === l.origin;
        return <span key={i} class={`line${origin && origin.seq === at ? " here" : ""}`} title={origin ? originText(origin) : ""}><span class="who">{origin && !same ? <button type="button" class="when" onClick={() => look(origin.seq, origin.time)}>{short(origin)}</button> : null}</span><span>{l.text}</span></span>;
      })}</pre>
      {folded > 0 ? <p class="faint">{count(folded)} lines of bookkeeping are folded.</p> : null}
      <Command text={answer.command} />
    </>
  );
}

const short = (o: Origin) => `${o.earlier ? "≤ " : ""}${o.latest ? "≥ " : ""}${brief(o.time, whole.value?.to ?? o.time)} ${o.manager || "?"}`;
const originText = (o: Origin) => `${o.earlier ? "set then or before: " : o.latest ? "set then, or by a version that the record missed: " : ""}${full(o.time)}, seq:${o.seq}, ${o.manager ? `by ${o.manager}` : "writer not proved"}`;

/** Told lists rollouts first, then each row of the story. */
export function Told({ uid }: { uid?: string }) {
  const answer = ofThis(story.answer.value, uid);
  if (!answer) return story.failed.value ? <p class="error">{story.failed.value}</p> : <p class="busy">The story is read…</p>;
  const rows = answer.rows ?? [], hidden = Object.entries(answer.hidden ?? {}).filter(([, n]) => n > 0);
  return (
    <>
      <Rollouts />
      <Section title="What happened in the window" note={count(rows.length + (answer.more ?? 0))}>
        {rows.length === 0 ? <p class="faint">Nothing. Widen the window with −.</p> : null}
        <ol class="changes">{rows.map((r) => (
          <li key={r.seq} onClick={(e) => { if (!(e.target as HTMLElement).closest("button")) look(r.seq, r.time, of(r)); }}>
            <p class="line-head"><When seq={r.seq} time={r.time} more={r} />{r.estimated ? <span class="faint">estimated</span> : null} <Class of={r.class} /> <span class="subject"><span class="kind">{r.kind}</span> <b>{named(r)}</b></span>
              {r.event ? <span>{r.event.reason}{r.event.count && r.event.count !== "1" ? ` ×${r.event.count}` : ""}: {r.event.message}</span> : <Writer manager={r.manager} />}</p>
          </li>))}</ol>
        {(answer.more ?? 0) > 0 ? <p class="faint">{count(answer.more ?? 0)} more are not shown: narrow the window.</p> : null}
        {hidden.length > 0 ? <p class="faint">Only counted: {hidden.map(([c, n]) => `${count(n)} ${c}`).join(", ")}.</p> : null}
      </Section>
      <Command text={answer.command} />
    </>
  );
}

/** within reports whether the record continues after the window of the story. */
const within = () => Number(story.asked.value?.params.to ?? 0) <= (whole.value?.to ?? 0);

function Rollouts() {
  const rollouts = story.answer.value?.rollouts ?? [];
  if (rollouts.length === 0) return null;
  return (
    <Section title="Rollouts" note={count(rollouts.length)}>
      <ol class="rollouts">{rollouts.map((r, i) => (
        <li key={i}><span class="kind">{r.kind}</span> <b>{r.name ? named(r) : ""}</b> {r.revision ? `revision ${r.revision}` : ""} {r.start ? <When seq={r.start.seq} time={r.start.time} /> : "began before the window"}{r.end ? <> to <When seq={r.end.seq} time={r.end.time} /></> : null}: <b>{r.outcome || `not done when the ${within() ? "window" : "record"} ends`}</b> {r.start ? <Writer manager={r.start.manager} /> : null}
          {(r.troubles ?? []).map((t, k) => <p key={k} class="badness">{t.reason}: {t.message}</p>)}</li>))}</ol>
    </Section>
  );
}

/** Near lists what changed around the object in the hour before the instant, linked objects first. If changes may be missing, it names no cause. */
export function Near({ uid }: { uid?: string }) {
  const answer = ofThis(nearby.answer.value, uid), all = useSignal(false);
  if (!answer) return nearby.failed.value ? <p class="error">{nearby.failed.value}</p> : <p class="busy">The namespace is looked at…</p>;
  const { rows, rowsTotal, others, othersTotal } = answer;
  return (
    <>
      {answer.unknown ? <p class="unknown"><b>No change can be named as the last one before.</b> {answer.unknown}</p> : null}
      <Section title="Changed around it in the hour before" note={rows.length < rowsTotal ? `${count(rows.length)} of ${count(rowsTotal)}` : count(rowsTotal)}>
        {rows.length === 0 ? <p class="faint">Nothing that is linked with it.</p> : null}
        <Rows rows={rows} />
      </Section>
      {othersTotal > 0 ? <p><button type="button" class="more" aria-expanded={all.value} onClick={() => { all.value = !all.value; }}>{count(othersTotal)} other {othersTotal === 1 ? "change" : "changes"} in the namespace and of objects without one</button></p> : null}
      {all.value ? <Rows rows={others} /> : null}
      {all.value && othersTotal > others.length ? <p class="faint">The newest {count(others.length)} are shown.</p> : null}
      <Command text={answer.command} />
    </>
  );
}
