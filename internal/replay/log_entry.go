package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/patch"
)

// entry is one delta of the log. Its JSON form is public: documented in the help of log.
type entry struct {
	Cluster         string       `json:"cluster"`
	Seq             int64        `json:"seq"`
	ObservedAt      time.Time    `json:"observedAt"`
	OccurredAt      time.Time    `json:"occurredAt"`
	Estimated       bool         `json:"estimated"`
	Type            string       `json:"type"`
	Source          string       `json:"source"`
	Group           string       `json:"group"`
	Version         string       `json:"version"`
	Resource        string       `json:"resource"`
	Kind            string       `json:"kind"`
	Namespace       string       `json:"namespace"`
	Name            string       `json:"name"`
	UID             string       `json:"uid"`
	ResourceVersion string       `json:"resourceVersion"`
	Manager         string       `json:"manager"`
	Subresource     string       `json:"subresource"`
	Changes         []changeJSON `json:"changes"`
	Diff            string       `json:"diff,omitempty"`

	about   string   // what the changes do not say
	changes []change // as shown to people
}

// changeJSON is one change.
type changeJSON struct {
	Op      string          `json:"op"`
	Path    string          `json:"path"`
	Pointer string          `json:"pointer"`
	Old     json.RawMessage `json:"old,omitempty"`
	New     json.RawMessage `json:"new,omitempty"`
}

func changesJSON(all []change) []changeJSON {
	out := make([]changeJSON, 0, len(all))
	for _, c := range all {
		out = append(out, changeJSON{Op: c.op, Path: c.path.String(), Pointer: c.path.pointer(), Old: raw(c.old), New: raw(c.new)})
	}
	return out
}

// raw is a value as JSON that every reader takes: what is not UTF-8 is replaced.
func raw(value patch.Doc) json.RawMessage {
	if value == nil {
		return nil
	}
	safe, _ := patch.SafeForSQL(value)
	return safe
}

func newEntry(cluster string, v *history.Version, about string, all []change) *entry {
	return &entry{
		Cluster: cluster, Seq: v.Seq, ObservedAt: v.ObservedAt, OccurredAt: v.OccurredAt, Estimated: !v.ObservedAt.Equal(v.OccurredAt),
		Type: string(v.Type), Source: v.Source, Group: v.Stream.Group, Version: versionOnly(v.Version), Resource: v.Stream.Resource, Kind: v.Stream.Kind,
		Namespace: v.Namespace, Name: v.Name, UID: v.UID, ResourceVersion: v.RV, Manager: v.Manager, Subresource: v.Subresource,
		Changes: changesJSON(all), about: about, changes: expanded(all),
	}
}

// versionOnly is the version of "group/version".
func versionOnly(version string) string {
	return version[strings.LastIndexByte(version, '/')+1:]
}

// remark is a line between the deltas: a gap, a pause, a damaged row.
type remark struct {
	Kind     string    `json:"kind"` // gap, pause, began, damaged, missing_day
	Group    string    `json:"group,omitempty"`
	Resource string    `json:"resource,omitempty"`
	From     time.Time `json:"from,omitzero"`
	To       time.Time `json:"to,omitzero"`
	Seq      int64     `json:"seq,omitempty"`
	Text     string    `json:"text"`
}

// logPrinter writes the log in one of its forms.
type logPrinter struct {
	out     io.Writer
	format  string // text, wide or json
	zone    *time.Location
	words   wording
	objects bool // name the object on each line
}

// stampForm is RFC 3339 with milliseconds, and the offset of the zone.
const stampForm = "2006-01-02T15:04:05.000Z07:00"

func (p *logPrinter) stamp(t time.Time) string { return t.In(p.zone).Format(stampForm) }

func (p *logPrinter) json(value any) error { return writeJSON(p.out, value, false) }

// Widths of the columns that a log has before it knows what comes: enough for most, and what is longer pushes the rest.
const (
	typeWidth   = len("Updated")
	whoWidth    = 24
	objectWidth = 36
	indent      = "    "
)

func (p *logPrinter) entry(e *entry) error {
	if p.format == outputJSON {
		return p.json(e)
	}
	head := p.head(e)
	lines := p.lines(e)
	var b strings.Builder
	b.WriteString(head)
	if len(lines) > 0 {
		b.WriteString("  " + lines[0])
	}
	text := strings.TrimRight(b.String(), " ") + "\n"
	for _, more := range lines[min(1, len(lines)):] {
		text += indent + more + "\n"
	}
	for line := range strings.Lines(e.Diff) {
		text += indent + render.Line(strings.TrimRight(strings.ReplaceAll(line, "\t", "  "), "\n")) + "\n"
	}
	_, err := io.WriteString(p.out, text)
	return err
}

func (p *logPrinter) head(e *entry) string {
	mark := " "
	if e.Estimated {
		mark = "~"
	}
	by := writer(e.Manager, e.Subresource)
	if by == "" || e.Type == string(cache.Deleted) { // Who deletes leaves no entry.
		by = "-"
	}
	head := fmt.Sprintf("%s%s  %-*s  ", mark, p.stamp(e.OccurredAt), typeWidth, e.Type)
	if p.objects {
		head += fmt.Sprintf("%-*s  ", objectWidth, e.Kind+" "+objectName(e.Namespace, e.Name))
	}
	if p.format == outputWide {
		head += fmt.Sprintf("seq:%-8d rv:%-8s %-8s ", e.Seq, e.ResourceVersion, e.Source)
	}
	return render.Line(head + fmt.Sprintf("%-*s", whoWidth, by))
}

// lines are what is said of the delta: all on the first line if it is one thing.
func (p *logPrinter) lines(e *entry) []string {
	var lines []string
	if e.about != "" {
		lines = append(lines, e.about)
	}
	if e.Diff != "" {
		return lines
	}
	for _, c := range e.changes {
		if len(c.path) > 0 { // The object as a whole came or went: that was said.
			lines = append(lines, p.words.words(c))
		}
	}
	return lines
}

func (p *logPrinter) remark(r remark) error {
	if p.format == outputJSON {
		return p.json(map[string]remark{"note": r})
	}
	_, err := fmt.Fprintf(p.out, "-- %s\n", render.Line(r.Text))
	return err
}

func objectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// title stands over the deltas of one life. In JSON each line says whose it is.
func (p *logPrinter) title(text string) error {
	if p.format == outputJSON {
		return nil
	}
	_, err := fmt.Fprintln(p.out, text)
	return err
}
