package evidence

import (
	"slices"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// Evidence says how a verdict is proved. The record stores its number.
type Evidence int16

// These are the kinds of evidence, by their number in the record.
const (
	Entry Evidence = iota + 1 // one entry of managedFields is new or later, or took a path
	Owner                     // one entry owns every written path
	None                      // nothing proves the writer
)

// A Version is the input of Judge.
type Version struct {
	Type     delta.Type   // of the delta: Judge names a writer only for Added and Updated
	Source   delta.Source // of the delta: Judge names a writer only for deltas of a watch
	InGap    bool         // versions may be missing before this one
	Live     bool         // Observed is the time of the change, not of a later recovery
	Observed time.Time    // when the recorder saw it

	Before patch.Doc // canonical text of the previous version, nil if there is none
	After  patch.Doc // canonical text
	Patch  []byte    // RFC 6902, from Before to After; nil if there is none. It may lack the resource version
}

// A Verdict names the writer of a version. Manager and Subresource are empty if Evidence is None.
type Verdict struct {
	Manager, Subresource string
	Evidence             Evidence
	Hint                 string // former owner of the removed fields, "" if there is none
}

var unproved = Verdict{Evidence: None}

// Judge applies the rules. It does not keep the texts.
func Judge(v Version) Verdict {
	switch {
	case v.Source != delta.SourceWatch || v.InGap || v.Type != delta.Added && v.Type != delta.Updated:
		return unproved
	case v.Before != nil && v.Patch != nil:
		return compared(v)
	case v.Before == nil && v.Type == delta.Added:
		return created(v.After)
	}
	return unproved
}

// created names the only entry of a first version.
func created(doc patch.Doc) Verdict {
	if entries := entriesOf(doc); len(entries) == 1 && !entries[0].ofServer() {
		return entries[0].proved(Entry)
	}
	return unproved
}

func compared(v Version) Verdict {
	touched, content := extent(v.Patch)
	c := &comparison{Version: v, after: entriesOf(v.After)}
	switch {
	case !content:
		return unproved // The server does not date such a change. Either a client wrote managedFields, or the change has no date.
	case !touched:
		return c.owner()
	}
	c.before = entriesOf(v.Before)
	c.last = newest(c.before)
	return c.writer()
}

const managedFields = "/metadata/managedFields"

// extent reports whether a patch changes managedFields, and whether it changes fields that a client can write.
func extent(text []byte) (touched, content bool) {
	for _, operation := range patch.Members(text) {
		path := pathOf(operation)
		switch {
		case within(path, managedFields):
			touched = true
		case within(managedFields, path):
			return true, true
		case path != "/metadata/resourceVersion" && path != "/metadata/generation":
			content = true
		}
	}
	return touched, content
}

func pathOf(operation patch.Doc) string {
	for key, value := range patch.Members(operation) {
		if string(key) == "path" && len(value) >= 2 {
			return string(value[1 : len(value)-1])
		}
	}
	return ""
}

// within reports whether a pointer equals another, or leads below it.
func within(pointer, other string) bool {
	rest, ok := strings.CutPrefix(pointer, other)
	return ok && (rest == "" || rest[0] == '/')
}

// A comparison compares a version with the previous one.
type comparison struct {
	Version
	before, after []entry
	last          time.Time // newest of before
	paths         *changes  // computed when first needed
}

// tolerance is the largest distance between observed_at and the time of an entry.
const tolerance = 2 * time.Second

// near reports whether a time agrees with the live observation.
func (c *comparison) near(at time.Time) bool {
	return c.Live && !at.IsZero() && c.Observed.Sub(at).Abs() <= tolerance
}

// changed returns the paths that the version changed.
func (c *comparison) changed() *changes {
	if c.paths == nil {
		c.paths = compare(c.Before, c.After, c.before, c.after)
	}
	return c.paths
}

// writer names the only candidate.
func (c *comparison) writer() Verdict {
	var found *entry
	for i := range c.after {
		e := &c.after[i]
		if !c.candidate(e) {
			continue
		}
		if found != nil {
			return unproved
		}
		found = e
	}
	if found == nil {
		return Verdict{Evidence: None, Hint: c.hint()}
	}
	return found.proved(Entry)
}

func (c *comparison) candidate(e *entry) bool {
	old := matching(c.before, e)
	switch {
	case e.among(old) || e.ofServer() || !e.written.IsZero() && e.written.Before(c.last):
		return false
	case len(old) == 0:
		return e.ownsAny(c.changed().written)
	case !e.later(old):
		return e.took(old, c.changed().written)
	}
	// An apply that only removes fields has a date, but owns no written field.
	return e.ownsAny(c.changed().written) || e.applied() && c.near(e.written)
}

// hint names the only entry that vanished.
func (c *comparison) hint() string {
	var gone *entry
	for i := range c.before {
		if len(matching(c.after, &c.before[i])) > 0 {
			continue
		}
		if gone != nil {
			return ""
		}
		gone = &c.before[i]
	}
	if gone == nil || gone.ofServer() || len(c.changed().removed) == 0 || !gone.ownsAll(c.changed().removed) {
		return ""
	}
	return textOf(gone.name)
}

// owner names the only entry that owns every written path.
func (c *comparison) owner() Verdict {
	last := newest(c.after)
	written := c.changed().written
	if !c.near(last) || len(c.changed().removed) > 0 || len(written) == 0 || slices.ContainsFunc(written, ofEviction) {
		return unproved
	}
	var found *entry
	for i := range c.after {
		e := &c.after[i]
		if !e.ownsAll(written) {
			continue
		}
		if found != nil {
			return unproved
		}
		found = e
	}
	if found == nil || found.ofServer() || !found.written.Equal(last) {
		return unproved
	}
	return found.proved(Owner)
}

// ofEviction reports whether the API server writes a path in an eviction. It then writes no entry, whichever manager owns the
// condition.
func ofEviction(p path) bool { return slices.Contains(p, `k:{"type":"DisruptionTarget"}`) }
