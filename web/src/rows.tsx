// Rows of changes, as the first screen, the inspector and the neighbourhood of an object show them.
import { look } from "./instant";
import type { Row } from "./model";
import { Class, Diff, When, Writer } from "./parts";

/** Rows lists changes. A click goes to the instant and the object. */
export function Rows({ rows, at, plain = false }: { rows: Row[]; at?: number; plain?: boolean }) {
  return (
    <ol class="changes">
      {rows.map((r) => (
        <li key={r.seq} class={r.seq === at ? "here" : ""} onClick={(e) => { if (!(e.target as HTMLElement).closest("button")) look(r.seq, r.time, plain ? {} : { uid: r.uid ?? "", resource: r.resource, namespace: r.namespace ?? "", name: r.name, panel: "object" }); }}>
          <p class="line-head"><When seq={r.seq} time={r.time} more={plain ? undefined : r} /> <Class of={r.class} /> {plain ? null : <span class="subject"><span class="kind">{r.kind}</span> {r.namespace ? <span class="faint">{r.namespace}/</span> : null}<b>{r.name}</b></span>} <Writer manager={r.manager} evidence={r.evidence} />{r.link ? <span class="faint">{r.link}</span> : null}</p>
          {(r.changes ?? []).length > 0 ? <Diff changes={r.changes ?? []} short /> : null}
        </li>
      ))}
    </ol>
  );
}
