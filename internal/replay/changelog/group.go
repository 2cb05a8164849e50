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

// together is how far apart in time the deltas of one line may be.
const together = time.Second

// A group is deltas of siblings that say the same: objects of one kind and one owner. On a terminal they are one line, with their number.
type group struct {
	all []*entries.Entry
	key string // equal for deltas that can be one line; "" if it stays alone
}

func (g *group) first() *entries.Entry { return g.all[0] }

// has reports whether it has a delta of an object. Its number is that of objects.
func (g *group) has(uid string) bool {
	return slices.ContainsFunc(g.all, func(e *entries.Entry) bool { return e.UID == uid })
}

// groups wait for more deltas that say the same.
type groups struct {
	waiting []*group             // in the order of their first deltas
	byKey   map[string]*group    // the newest of each key
	folded  func(*entries.Entry) // told of a delta that another one makes needless
}

// add puts a delta to the group that says the same, and gives the groups that wait no longer.
func (s *groups) add(e *entries.Entry, key string) (due []*group) {
	for len(s.waiting) > 0 && e.OccurredAt.Sub(s.waiting[0].first().OccurredAt).Abs() > together {
		due = append(due, s.next())
	}
	if e.Type == delta.Deleted {
		s.take(e.UID)
	}
	same := s.byKey[key]
	switch {
	case e.Terminates && s.deleted(e.UID): // newest first
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

// take folds the steps of a deletion, once the Deleted is here.
func (s *groups) take(uid string) {
	s.waiting = slices.DeleteFunc(s.waiting, func(g *group) bool {
		g.all = slices.DeleteFunc(g.all, func(e *entries.Entry) bool {
			needless := e.Terminates && e.UID == uid
			if needless {
				s.folded(e)
			}
			return needless
		})
		if len(g.all) == 0 {
			s.forget(g)
		}
		return len(g.all) == 0
	})
}

// deleted reports whether the Deleted of an object waits.
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

// forget takes a group from byKey, unless a later one of its key is there.
func (s *groups) forget(g *group) {
	if s.byKey[g.key] == g {
		delete(s.byKey, g.key)
	}
}

// key is equal for deltas that can be one line.
func (p *logPrinter) key(e *entries.Entry) string {
	if e.Owner == (entries.Owner{}) {
		return ""
	}
	same := []string{e.Group, e.Kind, e.Namespace, e.Owner.UID, string(e.Type), output.Mark(e.Estimated, e.Contradictory), by(e)}
	return strings.Join(append(same, p.lines(e)...), "\x00")
}

// flush prints the groups that still wait. Lines that are no deltas, such as gaps, come after them.
func (p *logPrinter) flush() (err error) {
	for len(p.groups.waiting) > 0 {
		err = errors.Join(err, p.group(p.groups.next()))
	}
	return err
}
