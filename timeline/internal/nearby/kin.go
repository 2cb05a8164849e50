package nearby

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/timeline/internal/changes"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
)

// A thing holds the parts of an object that links need.
type thing struct {
	kind, name  string
	owners      []string
	about       string // for an Event, the name of the object that it is about
	words, says words
}

// A kin is an object with the objects that belong to it, and the other objects of its namespace.
type kin struct {
	chain  map[string]string // by UID, the object and its owners, with the text of the link
	names  words             // names by which others refer to the object
	holds  words             // the words of the object, of its owners and of the objects that they own
	says   words             // the words of their conditions
	named  map[string]string // by name, the objects that the object names
	naming []*thing          // objects that name the object, or an object that it names
	known  words             // the names of all objects that are read
	owning map[string]bool   // UIDs of objects that own others
	works  words             // names of other objects that own objects
}

func (k *kin) above(uid string) bool { return k.chain[uid] != "" }

// kin reads the objects around the object at its instant, and the names of changed objects.
func (f *Finder) kin(ctx context.Context, a *Answer, v *find.Version, cluster []*history.Stream, rows []changes.Row) (*kin, error) {
	chain, err := find.Above(ctx, f.Record, v.Life)
	if err != nil {
		return nil, err
	}
	scope := history.Scope{Namespace: v.Life.Namespace}
	if scope.Namespace == "" {
		for _, s := range cluster {
			scope.Streams = append(scope.Streams, s.ID)
		}
	}
	k := &kin{
		chain: map[string]string{v.Life.UID: "the object itself"}, names: words{v.Life.Name: true}, holds: words{}, says: words{},
		named: map[string]string{}, owning: map[string]bool{}, works: words{}, known: words{v.Life.Name: true},
	}
	for _, l := range chain {
		k.chain[l.UID] = "its owner"
		k.names[l.Name], k.known[l.Name] = true, true
	}
	for i := range rows {
		k.known[rows[i].Name] = true
	}
	for l, err := range f.Record.Lives(ctx, history.LifeQuery{Scope: scope, LiveAt: v.Point.Seq}) {
		if err != nil {
			return nil, err
		}
		if !silent(l.Stream) {
			k.known[l.Name] = true
		}
	}
	all, err := f.things(ctx, a, v.Point, scope, k)
	if err != nil {
		return nil, err
	}
	k.gather(all)
	return k, nil
}

// silent reports whether links and gaps ignore the stream.
func silent(s *history.Stream) bool { return slices.Contains(ignored, s.Resource) }

// things reads all objects of a scope, and the Events about the object.
func (f *Finder) things(ctx context.Context, a *Answer, p history.Point, scope history.Scope, k *kin) (map[string]*thing, error) {
	var mu sync.Mutex
	all := map[string]*thing{}
	onDamaged := func(d *history.DamagedError) {
		mu.Lock()
		defer mu.Unlock()
		a.Incomplete = append(a.Incomplete, lack.DamagedAt(p.Time, d))
	}
	_, err := f.Record.Rebuild(ctx, p, scope, history.RebuildOptions{Damaged: onDamaged}, func(o history.Object) error {
		about := aboutOf(o.Stream, o.Doc)
		if silent(o.Stream) && !k.isOf(about) {
			return nil
		}
		t := thingOf(o.Stream, o.Name, o.Doc, k.known)
		t.about = about
		mu.Lock()
		defer mu.Unlock()
		all[o.UID] = t
		return nil
	})
	return all, err
}

// aboutOf returns the name of the object that an Event is about.
func aboutOf(s *history.Stream, doc patch.Doc) string {
	if s.Resource != "events" {
		return ""
	}
	return text(doc, "/involvedObject/name") + text(doc, "/regarding/name")
}

func thingOf(s *history.Stream, name string, doc patch.Doc, known words) *thing {
	t := &thing{kind: s.Kind, name: name, words: words{s.GroupResource().String(): true}, says: words{}}
	if doc == nil {
		return t // The object was deleted.
	}
	t.words.read(doc, known)
	t.says.readMessages(at(doc, "/status"), known)
	for _, owner := range patch.Members(at(doc, "/metadata/ownerReferences")) {
		t.owners = append(t.owners, text(owner, "/uid"))
	}
	return t
}

// gather finds the objects that belong to the object, and the objects that name it.
func (k *kin) gather(all map[string]*thing) {
	group := map[string]bool{}
	for uid := range k.chain {
		group[uid] = true
	}
	for grown := true; grown; {
		grown = false
		for uid, t := range all {
			if !group[uid] && slices.ContainsFunc(t.owners, func(o string) bool { return group[o] }) {
				group[uid], grown = true, true
			}
		}
	}
	for uid, t := range all {
		for _, o := range t.owners {
			k.owning[o] = true
		}
		if group[uid] {
			maps.Copy(k.holds, t.words)
			maps.Copy(k.says, t.says)
		}
	}
	for uid := range k.owning {
		if t := all[uid]; t != nil && !group[uid] {
			k.works[t.name] = true
		}
	}
	for _, t := range all {
		if t.about != "" { // An Event may be about a Pod that no longer exists.
			maps.Copy(k.holds, t.words)
		}
	}
	others := map[string]*thing{}
	for uid, t := range all {
		if !group[uid] && len(t.owners) == 0 && t.about == "" && !k.owning[uid] {
			others[uid] = t
		}
	}
	for _, t := range others {
		if k.holds[t.name] && !k.names[t.name] {
			k.named[t.name] = t.kind + " " + t.name
		}
	}
	for _, t := range others {
		if t.words.any(k.names) != "" || t.words.anyOf(k.named) != "" {
			k.naming = append(k.naming, t)
		}
	}
}

// isOf reports whether a name belongs to the object, or to a child that a controller named after it.
func (k *kin) isOf(name string) bool {
	for n := range k.names {
		if name == n || strings.HasPrefix(name, n+"-") {
			return true
		}
	}
	return false
}

// link describes how an object is linked, "" if it is not. strong says that a condition names it.
func (k *kin) link(r *changes.Row, t *thing) (how string, strong bool) {
	if how := k.chain[r.UID]; how != "" {
		return how, false
	}
	if k.owning[r.UID] {
		return "", false // This is another workload: it may name the same objects.
	}
	mine := !k.names[r.Name] && r.Name != r.Namespace
	switch {
	case mine && k.says[r.Name]:
		return "a condition names it", true
	case mine && k.holds[r.Name]:
		return "the object names it", false
	case t.words.any(k.names) != "":
		return "it names the object", false
	case t.words.anyOf(k.named) != "":
		return "it names " + k.named[t.words.anyOf(k.named)], false
	}
	for _, y := range k.naming {
		if y.words[r.Name] && !k.works[r.Name] { // A policy names other workloads: their Services are not linked.
			return y.kind + " " + y.name + " names it", false
		}
	}
	return "", false
}

// namedBy reads the changed objects at a seq, by UID. It adds the words of their later changes.
func (f *Finder) namedBy(ctx context.Context, a *Answer, rows []changes.Row, seq int64, known words) (map[string]*thing, error) {
	uids := []string{}
	for i := range rows {
		uids = append(uids, rows[i].UID)
	}
	slices.Sort(uids)
	found, lives, ids := map[string]*thing{}, []history.Life{}, []int64{}
	for life, err := range f.Record.Lives(ctx, history.LifeQuery{UIDs: slices.Compact(uids)}) {
		if err != nil {
			return nil, err
		}
		lives, ids = append(lives, life), append(ids, life.ObjectID)
	}
	docs, lost, err := f.Record.Lookup().LastVersions(ctx, ids, seq)
	if err != nil {
		return nil, err
	}
	a.Lost(lost)
	for _, l := range lives {
		found[l.UID] = thingOf(l.Stream, l.Name, docs[l.ObjectID], known)
	}
	for r, err := range f.Record.Kinship().Owners(ctx, lives) {
		if err != nil {
			return nil, err
		}
		found[r.UID].owners = r.Owners
	}
	for i := range rows {
		for _, c := range rows[i].Changes {
			if t := found[rows[i].UID]; t != nil {
				t.words.read(patch.Doc(c.Old), known)
				t.words.read(patch.Doc(c.New), known)
			}
		}
	}
	return found, nil
}
