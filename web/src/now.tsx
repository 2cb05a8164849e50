// The first screen: trouble now and its first change, what changed in the last hour, and whether that hour is complete.
import { brief, count, full, span, zone } from "./clock";
import { base, changes, chosenAt, compare, compared, density, lastHour, morePages, opened, recent, recentCount, trouble } from "./data";
import { look, of } from "./instant";
import { cursor, shown, whole } from "./window";
import { bars } from "./density";
import { focus, move } from "./focus";
import { head, recording, stopped } from "./live";
import type { Compared, Ref } from "./model";
import { Class, Command, Diff, Holes, named, Section, When } from "./parts";
import { Rows } from "./rows";
import type { Query } from "./query";

/** waits shows what an answer waits for. Before its request, it waits for other answers. */
const waits = <T,>(of: Query<T>, does: string) => <p class="busy">{of.busy.value ? does : "The strip and the lanes come first…"}</p>;

export function Now() {
  const at = cursor.value;
  return (
    <div class="now">
      <Complete />
      <TroubleList title={at !== null ? `Trouble at ${brief(at, whole.value?.to ?? at)}` : stopped.value ? "Trouble at the last commit" : "Trouble now"} />
      <Recent />
    </div>
  );
}

/** advice has what to do if the end of the record is not the present. */
const advice: Record<string, string> = {
  stopped: "Start the recorder.", starting: "The recorder has begun.", quiet: "The recorder runs: does it reach the cluster?", behind: "The recorder writes what it has seen.",
};

/** Complete shows whether the record of the hour before the instant is complete. */
function Complete() {
  const answer = recentCount.answer.value, h = lastHour.value;
  if (!h) return <p class="busy">The record is asked for…</p>;
  if (!answer) return recentCount.failed.value ? <p class="error">{recentCount.failed.value}</p> : waits(recentCount, "The hour is counted…");
  // Deltas after the last commit do not belong to the hour before it.
  const ended = cursor.value === null && stopped.value;
  const holes = (answer.incomplete ?? []).filter((i) => (i.kind !== "before" || i.to === null) && (!ended || i.from < h.to - 1)), short = h.to - h.from < 3_500_000;
  const what = short ? `The record begins ${span(h.to - h.from)} before ${ended ? "its last commit" : "this instant"}` : `The hour to ${brief(h.to, whole.value?.to ?? h.to)}`;
  return (
    <section class={`complete ${holes.length > 0 ? "holed" : "sound"}`} aria-label="Is the hour complete">
      <p><span class="sign" aria-hidden="true">{holes.length > 0 ? "◍" : "●"}</span> <b>{short ? `${what}, and is ${holes.length > 0 ? "not " : ""}complete since.` : `${what} is ${holes.length > 0 ? "not " : ""}complete.`}</b>
        {holes.length > 0 ? " What is hatched is not known." : ` Every version that the server had is on record.`}</p>
      {ended && head.value ? <p>{recording.value?.state === "stopped" ? "Nobody has recorded since" : "The record ends at"} {full(head.value.time).slice(0, 19)} {zone(head.value.time)}: what came then is not known. {advice[recording.value?.state ?? ""]}</p> : null}
      <Holes of={holes} />
    </section>
  );
}

function TroubleList({ title }: { title: string }) {
  const answer = trouble.answer.value, items = answer?.items ?? [];
  if (trouble.missing.value) return null;
  return (
    <Section title={title} note={answer ? (items.length < answer.total ? `${count(items.length)} of ${count(answer.total)}` : count(answer.total)) : undefined}>
      {trouble.failed.value ? <p class="error">{trouble.failed.value}</p> : null}
      {!answer && !trouble.failed.value ? waits(trouble, "All objects are looked at…") : null}
      {answer && items.length === 0 ? <p class="calm">Nothing is in trouble: no object says so of itself.</p> : null}
      <ol class="troubles">{items.map((t, i) => { const r: Ref = t.ref ?? t; return (
        <li key={i}>
          <button type="button" class="link" onClick={() => move(of(r))}><span class="kind">{r.kind}</span> <b>{named(r)}</b></button>
          <span class="badness">{t.text}</span>
          <p class="faint">{t.since !== null && t.sinceTime !== null ? <>since <When seq={t.since} time={t.sinceTime} more={r} />{head.value ? ` (${span((cursor.value ?? head.value.time) - t.sinceTime)})` : ""}</> : t.unknown ? "" : "for more than a day"}
            {t.firstChange ? <> · change before it <When seq={t.firstChange.seq} time={t.firstChange.time} more={t.firstChange.uid ? t.firstChange : r} /> {t.firstChange.text}</> : null}{t.unknown ? `${t.since !== null ? " · " : ""}${t.unknown}` : ""}</p>
        </li>); })}</ol>
    </Section>
  );
}

function Recent() {
  const answer = recent.answer.value, rows = answer?.rows ?? [], counted = recentCount.answer.value, by = counted ? bars(counted) : null, beats = counted?.hidden?.heartbeat ?? 0;
  const sum = (c: string) => (by ? (by.counts[by.classes.indexOf(c)] ?? new Float64Array()).reduce((a, b) => a + b, 0) : 0);
  const parts = (by?.classes ?? []).map((c): [string, number] => [c, sum(c)]).filter(([, n]) => n > 0);
  const h = lastHour.value;
  return (
    <Section title={`Changed in the ${h && h.to - h.from < 3_500_000 ? span(h.to - h.from) : "hour"} ${cursor.value !== null ? "before this instant" : stopped.value ? "before the last commit" : "before now"}`}>
      {by ? <p class="sums">{parts.map(([c, n]) => <span key={c}><Class of={c} /> {count(n)}</span>)}{parts.length === 0 ? <span class="calm">Nothing.</span> : null}
        <span class="faint">{count(beats)} {beats === 1 ? "heartbeat is" : "heartbeats are"} not shown</span></p> : null}
      {recent.failed.value && !recent.missing.value ? <p class="error">{recent.failed.value}</p> : null}
      <Rows rows={rows} />
      {answer?.next ? <button type="button" class="more" onClick={() => move({ panel: "changes" })}>The newest {count(rows.length)} are shown: open all</button> : null}
      <Command text={answer?.command ?? ""} />
    </Section>
  );
}

export function ChangeList() {
  const answer = changes.answer.value, rows = answer?.rows ?? [], s = shown.value, total = density.answer.value;
  const all = total ? bars(total).total.reduce((a, b) => a + b, 0) : null;
  return (
    <Section title="Changes in the window" note={all === null ? undefined : `${count(rows.length)} of ${count(all)}`}>
      {s ? <p class="faint">{full(s.from)} to {full(s.to)}, newest first.</p> : null}
      {changes.failed.value ? <p class="error">{changes.failed.value}</p> : null}
      {!answer && !changes.failed.value ? <p class="busy">The changes are read…</p> : null}
      <Rows rows={rows} at={chosenAt.value ?? undefined} />
      {answer?.next ? <button type="button" class="more" onClick={() => { morePages.value++; }}>show 100 more</button> : null}
      <Command text={answer?.command ?? ""} />
    </Section>
  );
}

/** Comparing shows what differs between two instants: counts, then objects, then paths. */
export function Comparing() {
  const from = base.value, at = chosenAt.value, answer = compare.answer.value;
  if (from === null) return (
    <Section title="Compare two instants"><p>Go to an instant at which all was well, and press <kbd>a</kbd> or this button. Then go to the instant at which it was not.</p>
      <p><button type="button" onClick={mark}>Compare with this instant</button></p></Section>
  );
  return (
    <Section title="Compare" note={<>seq:{from} with {at === null ? "now" : `seq:${at}`}</>}>
      <p><button type="button" onClick={() => look(from, null)}>go to seq:{from}</button> <button type="button" onClick={mark}>compare with this instant instead</button> <button type="button" onClick={() => move({ base: null })}>end</button></p>
      {compare.failed.value ? <p class="error">{compare.failed.value}</p> : null}
      {!answer && !compare.failed.value ? <p class="busy">Both instants are compared…</p> : null}
      {answer?.counts ? <p class="sums"><span class="added">+{count(answer.counts.added)} added</span><span class="removed">−{count(answer.counts.removed)} removed</span><span>~{count(answer.counts.changed)} changed</span><span class="faint">{count(answer.counts.noise)} differ only in noise</span></p> : null}
      <ol class="compared">{(answer?.objects ?? []).map((o, i) => <Pair key={i} o={o} />)}</ol>
      {answer?.next ? <p class="faint">{count((answer.objects ?? []).length)} objects are shown; filter by namespace or kind to see the others.</p> : null}
      <Command text={answer?.command ?? ""} />
    </Section>
  );
}

export function mark(): void {
  move({ base: focus.peek().at ?? head.peek()?.seq ?? null, panel: "compare" });
}

function Pair({ o }: { o: Compared }) {
  const r: Ref = o.ref ?? o, uid = r.uid ?? "", is = opened.value === uid && uid !== "";
  // The shown paths may still belong to another object.
  const mine = is && compared.asked.value?.params.uid === uid, paths = mine ? compared.answer.value?.changes : null;
  return (
    <li>
      <button type="button" class="link" aria-expanded={is} onClick={() => { opened.value = is ? "" : uid; }}><Class of={({ removed: "deleted", changed: "change" } as Record<string, string>)[o.op] ?? o.op} /> <span class="kind">{r.kind}</span> <b>{named(r)}</b> {o.paths > 0 ? <span class="faint">{count(o.paths)} {o.paths === 1 ? "path" : "paths"}</span> : null}{o.recreated ? <span class="faint">another life of this name</span> : null}</button>
      {is ? <>{paths ? <Diff changes={paths} /> : <p class="busy">{compared.failed.value || "The paths are compared…"}</p>}<button type="button" class="more" onClick={() => move(of(r))}>open the object</button></> : null}
    </li>
  );
}
