package diff

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/kuberewind/kuberewind/internal/compare"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/words"
	"github.com/kuberewind/kuberewind/internal/terminal"
)

// diffPrinter writes differences in one of their forms.
type diffPrinter struct {
	out       io.Writer
	note      func(string)
	format    string
	words     words.Wording
	allFields bool
	style     terminal.Style
	width     int // columns of the terminal, 0 without one
}

// Difference is the -o json form of a difference.
type Difference struct {
	Change    string       `json:"change"`
	Recreated bool         `json:"recreated"`
	Group     string       `json:"group"`
	Version   string       `json:"version"`
	Resource  string       `json:"resource"`
	Kind      string       `json:"kind"`
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	UID       string       `json:"uid"`
	From      *sideJSON    `json:"from,omitempty"`
	To        *sideJSON    `json:"to,omitempty"`
	Changes   []field.JSON `json:"changes"`
}

type sideJSON struct {
	Seq             int64  `json:"seq"`
	ResourceVersion string `json:"resourceVersion"`
}

var differenceSigns = map[string]string{compare.Added: "+", compare.Removed: "-", compare.Changed: "~"}

func (p *diffPrinter) write(all []shown, onlyBookkeeping int, more string) error {
	var err error
	if p.format == outputStat {
		err = p.stat(all)
	} else {
		for i := range all {
			if err = p.one(&all[i]); err != nil {
				return err
			}
		}
	}
	if err == nil && p.format == output.Text {
		err = p.total(all)
	}
	if err == nil && more != "" && (p.format == output.Text || p.format == outputStat) {
		_, err = fmt.Fprintf(p.out, "-- %s\n", more)
	} else if more != "" {
		p.note(more)
	}
	if onlyBookkeeping > 0 {
		p.note(fmt.Sprintf("%d more objects differ only in bookkeeping fields; --all-fields shows them", onlyBookkeeping))
	}
	return err
}

func (p *diffPrinter) one(d *shown) error {
	o := d.Object()
	var b bytes.Buffer
	switch p.format {
	case outputName:
		fmt.Fprintln(&b, render.Line(fmt.Sprintf("%s %s %s", differenceSigns[d.Change], o.Stream.GroupResource(), output.ObjectName(o.Namespace, o.Name))))
	case outputUnified:
		before, after, err := d.Docs()
		if err != nil {
			return err
		}
		title := o.Stream.GroupResource().String() + "/" + output.ObjectName(o.Namespace, o.Name)
		b.WriteString(p.style.Unified(words.Unified(title, before, after, titleOf(d.Before), titleOf(d.After), p.allFields)))
	case output.JSON:
		if err := p.json(&b, d); err != nil {
			return err
		}
	default:
		p.text(&b, d)
	}
	_, err := p.out.Write(b.Bytes())
	return err
}

func titleOf(s *compare.Side) string {
	if s == nil {
		return ""
	}
	return "rv " + s.RV
}

func jsonOf(s *compare.Side) *sideJSON {
	if s == nil {
		return nil
	}
	return &sideJSON{Seq: s.Seq, ResourceVersion: s.RV}
}

func (p *diffPrinter) json(b *bytes.Buffer, d *shown) error {
	o := d.Object()
	return output.WriteJSON(b, Difference{
		Change: d.Change, Recreated: d.Recreated, Group: o.Stream.Group, Version: resource.VersionOnly(o.Version), Resource: o.Stream.Resource, Kind: o.Stream.Kind,
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, From: jsonOf(d.Before), To: jsonOf(d.After), Changes: field.JSONOf(d.changes),
	}, false)
}

func (p *diffPrinter) text(b *bytes.Buffer, d *shown) {
	o := d.Object()
	line := fmt.Sprintf("%s %s %s", differenceSigns[d.Change], o.Stream.Kind, output.ObjectName(o.Namespace, o.Name))
	if d.Recreated {
		line += fmt.Sprintf("  (recreated: uid %s)", o.UID)
	}
	fmt.Fprintln(b, p.style.Change(render.Line(line)))
	if d.Change != compare.Changed {
		return
	}
	for _, c := range field.Expanded(d.changes) {
		line := output.Indent + p.style.Change(render.Line(p.words.Of(c)))
		fmt.Fprintln(b, terminal.Wrap(line, p.width, 2*len(output.Indent)))
	}
	if d.counted > 0 {
		fmt.Fprintln(b, output.Indent+p.style.Dim("… and "+output.Counted(d.counted, "change")+" of the status"))
	}
}

func counts(all []shown) (added, removed, changed int) {
	for _, d := range all {
		switch d.Change {
		case compare.Added:
			added++
		case compare.Removed:
			removed++
		default:
			changed++
		}
	}
	return added, removed, changed
}

func (p *diffPrinter) total(all []shown) error {
	if len(all) == 0 {
		return nil // like diff(1), print nothing without differences
	}
	added, removed, changed := counts(all)
	_, err := fmt.Fprintf(p.out, "%d added, %d removed, %d changed\n", added, removed, changed)
	return err
}

// stat prints the numbers of each resource.
func (p *diffPrinter) stat(all []shown) error {
	if len(all) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "RESOURCE\tADDED\tREMOVED\tCHANGED")
	for start := 0; start < len(all); {
		resource := all[start].Object().Stream.GroupResource()
		end := start
		for end < len(all) && all[end].Object().Stream.GroupResource() == resource {
			end++
		}
		added, removed, changed := counts(all[start:end])
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", resource, added, removed, changed)
		start = end
	}
	added, removed, changed := counts(all)
	fmt.Fprintf(w, "total\t%d\t%d\t%d\n", added, removed, changed)
	return w.Flush()
}
