package postgres

import (
	"bytes"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/evidence"
	"github.com/kuberewind/kuberewind/internal/fold"
	"github.com/kuberewind/kuberewind/patch"
)

// A comparer completes drafts, and holds the memory for that. One goroutine uses it at a time.
type comparer struct {
	before  []byte // the previous version
	changes []byte // the patches of the unfinished drafts
	packed  []byte
}

// forget discards the patches. All comparers together keep at most as much memory for the next batch as a Batch does.
func (c *comparer) forget() {
	c.changes = c.changes[:0]
	if cap(c.before)+cap(c.changes)+cap(c.packed) > maxSpare/maxComparers {
		*c = comparer{}
	}
}

// complete fills in what the row says of the version's text, and keeps the text for the next version. The previous
// draft of the same life must be complete.
func (c *comparer) complete(d *draft) {
	if d.entry == nil {
		return
	}
	before, change := c.change(d)
	if d.known.rewritten() {
		change = nil // It would change a text that the record does not hold.
	}
	d.judge(before, change)
	d.content(change)
	if d.next == nil && !d.ends {
		c.packed = s2.Encode(c.packed[:cap(c.packed)], d.doc)
		d.entry.doc = bytes.Clone(c.packed)
	}
}

// change returns the previous version, and the patch from it to this version. The patch does not set the resource
// version, because the row holds it. Both are nil if there is no previous version, or if the patch does not reproduce
// what the server served.
func (c *comparer) change(d *draft) (before patch.Doc, change []byte) {
	var err error
	switch {
	case d.pending != nil:
		before = append(c.before[:0], d.pending.doc...)
	case d.known != nil && d.known.doc != nil:
		before, err = d.known.text(c.before[:cap(c.before)])
	default:
		return nil, nil
	}
	start := len(c.changes)
	if err == nil {
		c.before = before[:0]
		// I6: a patch is stored only if it reproduces the version that the server served.
		c.changes, err = patch.AppendRebasedDiff(c.changes, before, d.doc, fold.ResourceVersion, quoted(d.rv))
	}
	if err != nil {
		d.mismatched, d.mismatch = true, err
		return nil, nil
	}
	return before, c.changes[start:len(c.changes):len(c.changes)]
}

// judge sets who made the version, as far as its managedFields prove it.
func (d *draft) judge(before patch.Doc, change []byte) {
	if d.known != nil && change == nil {
		return // The versions cannot be compared.
	}
	observed := time.UnixMicro(d.row.Observed)
	verdict := evidence.Judge(evidence.Version{
		Type: d.item.Type, Source: d.item.Source, InGap: d.inGap, Live: d.row.Occurred == d.row.Observed, Observed: observed,
		Before: before, After: d.doc, Patch: change,
	})
	d.row.Evidence = int16(verdict.Evidence)
	d.row.Manager, d.row.Subresource, d.row.Hint = clean(verdict.Manager), clean(verdict.Subresource), clean(verdict.Hint)
}

// content decides what the row carries: the patch, the whole object, or both.
func (d *draft) content(change []byte) {
	keyframe := d.known == nil || d.kind == delta.NumberSync || d.known.since+1 >= keyframeEvery || d.known.unsafe
	// I8: each day's partition can be read by itself.
	keyframe = keyframe || d.known.day != d.entry.day
	if change != nil {
		safe, replaced := patch.SafeForSQL(change)
		if safe[0] == '[' { // otherwise it is a text that says that the patch is too large for jsonb
			d.row.patch = safe
		}
		keyframe = keyframe || replaced || len(change) > len(d.doc)
	}
	if !keyframe && d.row.patch != nil {
		d.entry.since = d.known.since + 1
		return
	}
	d.row.object, d.entry.unsafe = patch.SafeForSQL(d.doc)
	if d.entry.unsafe {
		d.row.exact = d.doc
	}
}

// quoted returns a resource version as JSON, or nil for "".
func quoted(rv string) patch.Doc {
	if rv == "" {
		return nil
	}
	return patch.Quote([]byte(rv))
}
