// Package find finds the life that a request names, and the lives related to it.
package find

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
)

// A Name names an object: by its UID, or by resource, namespace and name.
type Name struct{ UID, Resource, Namespace, Name string }

// A Ref names an object in an answer.
type Ref struct {
	Resource  string `json:"resource"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// RefOf names a life.
func RefOf(l history.Life) Ref {
	return Ref{Resource: l.Stream.GroupResource().String(), Kind: l.Stream.Kind, Namespace: l.Namespace, Name: l.Name, UID: l.UID}
}

// Life finds the life that a name means at a seq: the life that lived then, or else the last earlier one, or else the first
// later one.
func Life(ctx context.Context, rec *history.Record, n Name, seq int64) (history.Life, error) {
	q, err := n.query(ctx, rec)
	if err != nil {
		return history.Life{}, err
	}
	var found history.Life
	for life, err := range rec.Lives(ctx, q) {
		switch {
		case err != nil:
			return life, err
		case found.Stream == nil, life.ObjectID <= seq:
			found = life
		}
	}
	if found.Stream == nil {
		return found, ask.NotFound("the record never held %s: look for it under another name", n)
	}
	return found, nil
}

func (n Name) query(ctx context.Context, rec *history.Record) (q history.LifeQuery, err error) {
	switch {
	case n.UID != "":
		return history.LifeQuery{UID: n.UID}, nil
	case n.Resource == "" || n.Name == "":
		return q, ask.Bad("name the object: give uid, or resource, namespace and name")
	}
	streams, err := rec.Streams(ctx)
	if err != nil {
		return q, err
	}
	if err := marks.CheckResources(streams, []string{n.Resource}); err != nil {
		return q, err
	}
	return history.LifeQuery{Scope: history.Scope{Streams: marks.StreamsOf(streams, []string{n.Resource}), Namespace: n.Namespace, Name: n.Name}}, nil
}

// String names the object in an error.
func (n Name) String() string {
	switch {
	case n.UID != "":
		return "an object with the UID " + ask.Cut(n.UID)
	case n.Namespace != "":
		return ask.Cut(n.Resource) + " " + ask.Cut(n.Namespace) + "/" + ask.Cut(n.Name)
	}
	return ask.Cut(n.Resource) + " " + ask.Cut(n.Name)
}

// Kin are the lives that refer to another one, at a seq.
type Kin struct {
	Owned  []history.Life // in the order in which they began
	Events []history.Life // about it, the newest first
	More   bool           // more objects live than KinOf read
}

// mostKin bounds how many objects KinOf reads. A namespace has fewer; a cluster may have more.
const mostKin = 100_000

// aboutCluster are the namespaces of Events about objects without a namespace. The API server accepts no others.
var aboutCluster = []string{"default", "kube-system"}

// KinOf finds the objects that an object owns, and the Events about it, among those that lived at a seq. Objects that a
// cluster-scoped object owns may be in any namespace.
func KinOf(ctx context.Context, rec *history.Record, of history.Life, seq int64) (k Kin, err error) {
	var events, others []history.Life
	for life, err := range rec.Lives(ctx, history.LifeQuery{Scope: history.Scope{Namespace: of.Namespace}, LiveAt: seq, MayReferTo: &of}) {
		switch {
		case err != nil:
			return k, err
		case life.Stream.Resource == "events":
			if of.Namespace != "" || slices.Contains(aboutCluster, life.Namespace) {
				events = append(events, life)
			}
		case len(others) == mostKin:
			k.More = true
		default:
			others = append(others, life)
		}
	}
	for r, err := range rec.Kinship().Owners(ctx, others) {
		if err != nil {
			return k, err
		}
		if slices.Contains(r.Owners, of.UID) {
			k.Owned = append(k.Owned, r.Life)
		}
	}
	if n := len(events); n > mostKin {
		events, k.More = events[n-mostKin:], true
	}
	for r, err := range rec.Kinship().Relations(ctx, events) {
		if err != nil {
			return k, err
		}
		if r.About == of.UID {
			k.Events = append(k.Events, r.Life)
		}
	}
	slices.SortFunc(k.Owned, func(a, b history.Life) int { return cmp.Compare(a.ObjectID, b.ObjectID) })
	slices.SortFunc(k.Events, func(a, b history.Life) int { return cmp.Compare(b.ObjectID, a.ObjectID) })
	return k, nil
}

// mostAbove bounds a chain of owners. Kubernetes' own chains have three.
const mostAbove = 8

// Above returns the owners of a life that are on record, from the nearest to the root.
func Above(ctx context.Context, rec *history.Record, of history.Life) (chain []history.Life, err error) {
	chains, err := AllAbove(ctx, rec, []history.Life{of})
	return chains[of.ObjectID], err
}

// AllAbove is Above for many lives, by their ObjectID. It makes two queries for each level of owners, not for each life.
func AllAbove(ctx context.Context, rec *history.Record, of []history.Life) (chains map[int64][]history.Life, err error) {
	chains = map[int64][]history.Life{}
	at := map[int64]history.Life{} // the end of each chain that may continue
	for _, l := range of {
		at[l.ObjectID] = l
	}
	for level := 0; level < mostAbove && len(at) > 0; level++ {
		owners, err := ownersOf(ctx, rec, at)
		if err != nil {
			return nil, err
		}
		for id, end := range at {
			above, found := owners[end.ObjectID]
			if !found {
				delete(at, id)
				continue
			}
			at[id], chains[id] = above, append(chains[id], above)
		}
	}
	return chains, nil
}

// ownersOf returns the first owner on record of each life, by the ObjectID of the life.
func ownersOf(ctx context.Context, rec *history.Record, at map[int64]history.Life) (owners map[int64]history.Life, err error) {
	named, byUID, uids := map[int64]string{}, map[string]history.Life{}, []string{}
	for r, err := range rec.Kinship().Owners(ctx, distinct(at)) {
		if err != nil {
			return nil, err
		}
		named[r.ObjectID] = r.Owners[0]
		uids = append(uids, r.Owners[0])
	}
	if len(uids) == 0 {
		return nil, nil
	}
	for life, err := range rec.Lives(ctx, history.LifeQuery{UIDs: uids}) {
		if err != nil {
			return nil, err
		}
		byUID[life.UID] = life
	}
	owners = map[int64]history.Life{}
	for id, uid := range named {
		if life, found := byUID[uid]; found {
			owners[id] = life
		}
	}
	return owners, nil
}

// distinct returns each life once, in the order of their ObjectIDs.
func distinct(at map[int64]history.Life) []history.Life {
	lives := slices.SortedFunc(maps.Values(at), func(a, b history.Life) int { return cmp.Compare(a.ObjectID, b.ObjectID) })
	return slices.CompactFunc(lives, func(a, b history.Life) bool { return a.ObjectID == b.ObjectID })
}
