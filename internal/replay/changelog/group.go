package changelog

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/output"
)

// groupWithin is the maximum time between the deltas of one line.
const groupWithin = time.Second

// A group holds equal deltas of siblings: objects of one kind and one owner. On a terminal, the group is one line, with the
// number of objects.
type group struct {
	all []*entries.Entry
	key string // equal for deltas that one line can show; "" if the delta needs its own line
}

func (g *group) first() *entries.Entry { return g.all[0] }

// has reports whether the group has a delta of an object. A group has at most one delta of each object.
func (g *group) has(uid string) bool {
	return slices.ContainsFunc(g.all, func(e *entries.Entry) bool { return e.UID == uid })
}

// groups holds groups that wait for more deltas with the same text.
type groups struct {
	waiting []*group             // in the order of their first deltas
	byKey   map[string]*group    // the newest group of each key
	folded  func(*entries.Entry) // receives each delta that another delta makes redundant
}

// add adds a delta to the group with its key, and returns the groups that no longer wait.
func (s *groups) add(e *entries.Entry, key string) (due []*group) {
	for len(s.waiting) > 0 && e.OccurredAt.Sub(s.waiting[0].first().OccurredAt).Abs() > groupWithin {
		due = append(due, s.next())
	}
	if e.Type == delta.Deleted {
		s.foldSteps(e.UID)
	}
	same := s.byKey[key]
	switch {
	case e.Terminates && s.deleted(e.UID): // newest first, the Deleted comes before its steps
		s.folded(e)
	case key != "" && same != nil && !same.has(e.UID):
		same.all = append(same.all, e)
	default:
		s.begin(&group{all: []*entries.Entry{e}, key: key})
	}
	return due
}

func (s *groups) begin(g *group) {
	s.waiting = append(s.waiting, g)
	if s.byKey == nil {
		s.byKey = map[string]*group{}
	}
	s.byKey[g.key] = g
}

// foldSteps folds the waiting steps of a deletion when its Deleted arrives.
func (s *groups) foldSteps(uid string) {
	s.waiting = slices.DeleteFunc(s.waiting, func(g *group) bool {
		g.all = slices.DeleteFunc(g.all, func(e *entries.Entry) bool {
			redundant := e.Terminates && e.UID == uid
			if redundant {
				s.folded(e)
			}
			return redundant
		})
		if len(g.all) == 0 {
			s.forget(g)
		}
		return len(g.all) == 0
	})
}

// deleted reports whether a group with the Deleted of an object waits.
func (s *groups) deleted(uid string) bool {
	return slices.ContainsFunc(s.waiting, func(g *group) bool {
		return slices.ContainsFunc(g.all, func(e *entries.Entry) bool { return e.UID == uid && e.Type == delta.Deleted })
	})
}

func (s *groups) next() *group {
	g := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.forget(g)
	return g
}

// forget removes a group from byKey, unless byKey already has a later group of the key.
func (s *groups) forget(g *group) {
	if s.byKey[g.key] == g {
		delete(s.byKey, g.key)
	}
}

// key returns a key that is equal for deltas that one line can show.
func (p *logPrinter) key(e *entries.Entry) string {
	if e.Owner == (entries.Owner{}) {
		return ""
	}
	same := []string{e.Group, e.Kind, e.Namespace, e.Owner.UID, string(e.Type), output.Mark(e.Estimated, e.Contradictory), by(e)}
	return strings.Join(append(same, p.lines(e)...), "\x00")
}

// flush prints the waiting groups, so that other lines, such as gaps, come after them.
func (p *logPrinter) flush() (err error) {
	for len(p.groups.waiting) > 0 {
		err = errors.Join(err, p.group(p.groups.next()))
	}
	return err
}
