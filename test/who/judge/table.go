package judge

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// classKey is the key by which deltas are counted: the writer and the request.
type classKey struct{ by, request string }

func (k classKey) compare(other classKey) int {
	return cmp.Or(cmp.Compare(k.by, other.by), cmp.Compare(k.request, other.request))
}

// Listed counts deltas of lists, which name no actor.
const Listed = "listed"

func keyOf(d Delta, writers []Write, people []string) classKey {
	switch {
	case d.What == Listed:
		return classKey{Listed, d.Type}
	case len(writers) == 0:
		return classKey{"no request joins", cmp.Or(d.What, d.Type)}
	case len(writers) == 1:
		w := writers[0]
		key := classKey{"controllers", w.Verb}
		if w.Subresource != "" {
			key.request += " " + w.Subresource
		}
		if slices.Contains(people, w.User) {
			key.by = "people"
		}
		return key
	}
	return classKey{"several join", d.Type}
}

// A Class is a row of the table.
type Class struct {
	classKey
	Deltas, Entry, Owner, None, Wrong int
	Took, TookNamed                   int
}

func (c *Class) count(d Delta) {
	c.Deltas++
	switch {
	case d.Manager == "":
		c.None++
	case d.Evidence == "owner":
		c.Owner++
	default:
		c.Entry++
	}
}

func (c *Class) add(other Class) {
	c.Deltas += other.Deltas
	c.Entry += other.Entry
	c.Owner += other.Owner
	c.None += other.None
	c.Wrong += other.Wrong
	c.Took += other.Took
	c.TookNamed += other.TookNamed
}

// Print writes the table, the hints, each wrong delta, each update below the floor, and what was not judged.
func (v Verdict) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "by\trequest\tdeltas\tentry\towner\tnone\twrong\ttook a field\tnamed of these")
	all := Class{classKey: classKey{"all", ""}}
	for _, c := range v.Classes {
		c.print(table)
		all.add(c)
	}
	all.print(table)
	if err := table.Flush(); err != nil {
		return err
	}
	for _, f := range v.Wrong {
		fmt.Fprintln(out, "wrong:", f)
	}
	for _, f := range v.Unnamed {
		fmt.Fprintln(out, "took a field, and is not named:", f)
	}
	for _, r := range slices.SortedFunc(maps.Keys(v.NotJudged), compareResources) {
		fmt.Fprintf(out, "not judged, because the log keeps no bodies: %d deltas of %s\n", v.NotJudged[r], r.Name)
	}
	_, err := fmt.Fprintf(out, "hints: %d right, %d wrong\n", v.HintsRight, v.HintsWrong)
	return err
}

func (c *Class) print(out io.Writer) {
	fmt.Fprintf(out, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", c.by, c.request, c.Deltas, c.Entry, c.Owner, c.None, c.Wrong, c.Took, share(c.TookNamed, c.Took))
}

func share(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%d (%.1f %%)", part, 100*float64(part)/float64(whole))
}
