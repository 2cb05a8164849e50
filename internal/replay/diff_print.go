package replay

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/kuberewind/kuberewind/internal/render"
)

// diffPrinter writes differences in one of their forms.
type diffPrinter struct {
	out       io.Writer
	note      func(string)
	format    string
	words     wording
	allFields bool
}

// differenceJSON is a difference as -o json has it.
type differenceJSON struct {
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
	Changes   []changeJSON `json:"changes"`
}

type sideJSON struct {
	Seq             int64  `json:"seq"`
	ResourceVersion string `json:"resourceVersion"`
}

var differenceSigns = map[string]string{differenceAdded: "+", differenceRemoved: "-", differenceChanged: "~"}

func (p *diffPrinter) print(all []difference, onlyBookkeeping int) error {
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
	if err == nil && p.format == outputText {
		err = p.total(all)
	}
	if onlyBookkeeping > 0 {
		p.note(fmt.Sprintf("%d more objects are different in bookkeeping fields only; --all-fields shows them", onlyBookkeeping))
	}
	return err
}

func (p *diffPrinter) one(d *difference) error {
	o := d.object()
	var b bytes.Buffer
	switch p.format {
	case outputName:
		fmt.Fprintln(&b, render.Line(fmt.Sprintf("%s %s %s", differenceSigns[d.change], o.Stream.GroupResource(), objectName(o.Namespace, o.Name))))
	case outputUnified:
		before, after, err := d.docs()
		if err != nil {
			return err
		}
		title := o.Stream.GroupResource().String() + "/" + objectName(o.Namespace, o.Name)
		b.WriteString(unified(title, before, after, d.before.title(), d.after.title(), p.allFields))
	case outputJSON:
		if err := p.json(&b, d); err != nil {
			return err
		}
	default:
		if err := p.text(&b, d); err != nil {
			return err
		}
	}
	_, err := p.out.Write(b.Bytes())
	return err
}

func (s *side) title() string {
	if s == nil {
		return ""
	}
	return "rv " + s.RV
}

func (s *side) json() *sideJSON {
	if s == nil {
		return nil
	}
	return &sideJSON{Seq: s.Seq, ResourceVersion: s.RV}
}

// changes are those that are shown of a difference.
func (p *diffPrinter) changes(d *difference) ([]change, error) {
	before, after, err := d.docs()
	if err != nil {
		return nil, err
	}
	if p.allFields {
		return changes(before, after), nil
	}
	if before != nil && after != nil {
		return visible(changes(before, after)), nil
	}
	if before != nil {
		before = withoutBookkeeping(before)
	}
	if after != nil {
		after = withoutBookkeeping(after)
	}
	return changes(before, after), nil
}

func (p *diffPrinter) json(b *bytes.Buffer, d *difference) error {
	all, err := p.changes(d)
	if err != nil {
		return err
	}
	o := d.object()
	return writeJSON(b, differenceJSON{
		Change: d.change, Recreated: d.recreated, Group: o.Stream.Group, Version: versionOnly(o.Version), Resource: o.Stream.Resource, Kind: o.Stream.Kind,
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, From: d.before.json(), To: d.after.json(), Changes: changesJSON(all),
	}, false)
}

func (p *diffPrinter) text(b *bytes.Buffer, d *difference) error {
	o := d.object()
	line := fmt.Sprintf("%s %s %s", differenceSigns[d.change], o.Stream.Kind, objectName(o.Namespace, o.Name))
	if d.recreated {
		line += fmt.Sprintf("  (recreated: uid %s)", o.UID)
	}
	fmt.Fprintln(b, render.Line(line))
	if d.change != differenceChanged {
		return nil
	}
	all, err := p.changes(d)
	if err != nil {
		return err
	}
	for _, c := range expanded(all) {
		fmt.Fprintln(b, indent+render.Line(p.words.words(c)))
	}
	return nil
}

func counts(all []difference) (added, removed, changed int) {
	for _, d := range all {
		switch d.change {
		case differenceAdded:
			added++
		case differenceRemoved:
			removed++
		default:
			changed++
		}
	}
	return added, removed, changed
}

func (p *diffPrinter) total(all []difference) error {
	if len(all) == 0 {
		return nil // as diff(1): what is the same is not worth a word
	}
	added, removed, changed := counts(all)
	_, err := fmt.Fprintf(p.out, "%d added, %d removed, %d changed\n", added, removed, changed)
	return err
}

// stat gives the numbers of each resource.
func (p *diffPrinter) stat(all []difference) error {
	if len(all) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "RESOURCE\tADDED\tREMOVED\tCHANGED")
	for start := 0; start < len(all); {
		resource := all[start].object().Stream.GroupResource()
		end := start
		for end < len(all) && all[end].object().Stream.GroupResource() == resource {
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
