package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/kuberewind/kuberewind/internal/erasure"
)

// Erased prints what was erased, or would be erased. Kept are paths of spooled deltas that may still hold the value.
func Erased(out io.Writer, r erasure.Report, kept []string) error {
	t := newTable(out)
	for _, o := range r.Objects {
		t.titled("RESOURCE", "NAMESPACE", "NAME", "UID", "DELTAS")
		t.row(o.Resource, o.Namespace, o.Name, o.UID, fmt.Sprint(o.Deltas))
	}
	if err := t.flush(); err != nil {
		return err
	}
	done := "nothing was found"
	switch {
	case r.Deltas+r.Documents == 0:
	case r.DryRun:
		done = "would be erased"
	default:
		done = fmt.Sprintf("erased, on record as erasure %d", r.Erasure)
	}
	fmt.Fprintf(out, "%d deltas of %d objects, %d documents of the server: %s; %d checkpoints are dropped and made again\n", r.Deltas, len(r.Objects), r.Documents, done, r.Checkpoints)
	for _, o := range r.Objects {
		if o.Holds {
			fmt.Fprintf(out, "Warning: the newest version of %s %s/%s holds the value, and the next one would record it again: change the object in the cluster, then erase again%s\n", o.Resource, o.Namespace, o.Name, redactions(&o))
		}
	}
	if r.Named > 0 {
		fmt.Fprintf(out, "Warning: %d objects have the value in their name or namespace, where it stays\n", r.Named)
	}
	if r.Mentions > 0 {
		fmt.Fprintf(out, "Warning: %d gaps, streams, configurations of recorders, managers of deltas, or reasons of prunes and erasures contain the value, where it stays\n", r.Mentions)
	}
	for _, path := range kept {
		fmt.Fprintf(out, "Warning: a spool that no recorder will write may hold the value: remove %s\n", path)
	}
	if r.Erasure > 0 {
		fmt.Fprintln(out, "If a recorder ran meanwhile, it may set its spool aside at its next start, with the value in it: run recorder status there, and remove the spool.")
		fmt.Fprintln(out, "The old rows stay in the files of the database until these statements have run. They also stay in its write-ahead log, replicas and backups:")
		for _, day := range r.Days {
			fmt.Fprintf(out, "  VACUUM (FULL, ANALYZE) kuberewind.deltas_p%s;\n", strings.ReplaceAll(day, "-", ""))
		}
		fmt.Fprintln(out, "  VACUUM FULL kuberewind.documents, kuberewind.checkpoint_blocks; ANALYZE kuberewind.deltas_data; VACUUM FULL pg_statistic;")
	}
	return nil
}

// redactions returns the redaction rules that hide the value from now on.
func redactions(o *erasure.Object) string {
	var rules []string
	for _, path := range o.Paths {
		resource := o.Resource
		if !strings.Contains(resource, ".") {
			resource += "." // the core group
		}
		rules = append(rules, fmt.Sprintf("--redact '%s:%s'", resource, path))
	}
	if len(rules) == 0 {
		return ""
	}
	return ", or record it with " + strings.Join(rules, " ")
}
