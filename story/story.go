package story

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/history"
)

// An Object is a life that belongs to a story.
type Object struct {
	history.Life
	Owner *Object // nil for the object that the story is about
	Depth int     // the number of owners above it
}

// A Story is an object with the objects that belong to it.
type Story struct {
	Objects []*Object // each after its owner: first the object that the story is about, in all its lives

	rec      *history.Record
	times    *history.Times
	query    history.Query
	prior    int64             // seq of the last delta before the story
	objects  map[int64]*Object // by ObjectID
	about    map[int64]*Object // by Event, the object that the Event is about
	rollouts tracker
}

// Find finds the object that the Scope of the query names, in all its lives; Search then finds the rest. The bounds of the
// query bound the story: lives outside them do not belong to it. If there is no such object, the Story has no Objects.
func Find(ctx context.Context, rec *history.Record, q history.Query) (*Story, error) {
	if q.Name == "" {
		return nil, errors.New("a story is about one object: name it")
	}
	s := &Story{rec: rec, times: rec.Times(), query: q, objects: map[int64]*Object{}, about: map[int64]*Object{}, rollouts: newTracker()}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	return s, s.roots(ctx)
}

// Search finds the objects that the object owns, and the Events about all of them. Call it once, before Entries.
func (s *Story) Search(ctx context.Context) error {
	if len(s.Objects) == 0 {
		return nil
	}
	return s.relatives(ctx)
}

// begin finds the last delta before the story.
func (s *Story) begin(ctx context.Context) error {
	s.prior = max(s.query.FromSeq-1, 0)
	if s.query.From.IsZero() {
		return nil
	}
	p, err := s.rec.Resolve(ctx, history.At(s.query.From.Add(-time.Microsecond)), history.Scope{}) // the record counts microseconds
	if errors.Is(err, history.ErrBeforeRecord) {
		return nil
	}
	s.prior = max(s.prior, p.Seq)
	return err
}

func (s *Story) roots(ctx context.Context) error {
	for life, err := range s.rec.Lives(ctx, history.LifeQuery{Scope: s.query.Scope}) {
		if err != nil {
			return err
		}
		if s.within(life) {
			s.add(life, nil)
		}
	}
	return nil
}

func (s *Story) within(l history.Life) bool {
	return (s.query.ToSeq == 0 || l.ObjectID <= s.query.ToSeq) && (l.DeletedSeq == 0 || l.DeletedSeq > s.prior)
}

// add adds a life once: it may have two owners in the story.
func (s *Story) add(l history.Life, owner *Object) {
	if s.objects[l.ObjectID] != nil {
		return
	}
	o := &Object{Life: l, Owner: owner}
	if owner != nil {
		o.Depth = owner.Depth + 1
	}
	s.Objects, s.objects[l.ObjectID] = append(s.Objects, o), o
}

// relatives adds the owned objects, level by level, and finds the Events.
func (s *Story) relatives(ctx context.Context) error {
	var others, events []history.Life
	query := history.LifeQuery{
		Scope: history.Scope{Namespace: s.query.Namespace}, BornBy: cmp.Or(s.query.ToSeq, math.MaxInt64), EndedAfter: max(s.prior, s.Objects[0].ObjectID-1),
	}
	for l, err := range s.rec.Lives(ctx, query) {
		switch {
		case err != nil:
			return err
		case l.Stream.Resource == "events" && (l.Stream.Group == "" || l.Stream.Group == "events.k8s.io"):
			events = append(events, l)
		default:
			others = append(others, l)
		}
	}
	if err := s.owned(ctx, others); err != nil {
		return err
	}
	if s.query.Namespace == "" {
		return s.addEvents(ctx, events)
	}
	names := map[string]bool{}
	for _, o := range s.Objects {
		names[o.Name] = true
	}
	return s.addEvents(ctx, slices.DeleteFunc(events, func(l history.Life) bool {
		name, ok := named(l.Name)
		return ok && !names[name]
	}))
}

// owned adds those of the lives that an object of the story owns, or once owned.
func (s *Story) owned(ctx context.Context, lives []history.Life) error {
	owned := map[string][]history.Life{} // by UID of the owner
	if err := note(owned, s.rec.Kinship().Owners(ctx, lives)); err != nil {
		return err
	}
	s.grow(owned)
	others := slices.DeleteFunc(lives, func(l history.Life) bool { return s.objects[l.ObjectID] != nil })
	if err := note(owned, s.rec.Kinship().Adoptions(ctx, others, s.Objects[0].ObjectID)); err != nil {
		return err
	}
	s.grow(owned)
	return nil
}

func note(owned map[string][]history.Life, relations iter.Seq2[history.Relation, error]) error {
	for r, err := range relations {
		if err != nil {
			return err
		}
		for _, uid := range r.Owners {
			owned[uid] = append(owned[uid], r.Life)
		}
	}
	return nil
}

// grow adds the objects that the objects of the story own, level by level.
func (s *Story) grow(owned map[string][]history.Life) {
	for level := s.Objects; len(level) > 0; {
		known := len(s.Objects)
		for _, owner := range level {
			for _, l := range owned[owner.UID] {
				s.add(l, owner)
			}
		}
		level = s.Objects[known:]
	}
}

// hexNanos is the least number of hexadecimal digits of the nanoseconds since 1970, from 1973 on.
const hexNanos = 15

// named returns the name of the object that an Event is about, if client-go named the Event: after the object, with
// hexadecimal nanoseconds. For any other name, ok is false.
func named(event string) (name string, ok bool) {
	i := strings.LastIndexByte(event, '.')
	if i < 0 || len(event)-i-1 < hexNanos {
		return "", false
	}
	_, err := strconv.ParseUint(event[i+1:], 16, 64)
	return event[:i], err == nil
}

// addEvents finds the Events that are about an object of the story.
func (s *Story) addEvents(ctx context.Context, events []history.Life) error {
	byUID := map[string]*Object{}
	for _, o := range s.Objects {
		byUID[o.UID] = o
	}
	for r, err := range s.rec.Kinship().Relations(ctx, events) {
		if err != nil {
			return err
		}
		if o := byUID[r.About]; o != nil && s.objects[r.ObjectID] == nil {
			s.about[r.ObjectID] = o
		}
	}
	return nil
}

// ids returns the lives whose deltas the story reads.
func (s *Story) ids() []int64 {
	ids := make([]int64, 0, len(s.objects)+len(s.about))
	for id := range s.objects {
		ids = append(ids, id)
	}
	for id := range s.about {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
