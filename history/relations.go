package history

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/kuberewind/kuberewind/internal/owner"
	"github.com/kuberewind/kuberewind/patch"
)

// A Relation names the other objects that a life refers to, as of its first version on record.
type Relation struct {
	Life
	Owners []string // UIDs of its ownerReferences, the controller first
	About  string   // for an Event, the UID of the object that it is about
}

// Kinship finds the other objects that lives refer to.
type Kinship struct{ view *view }

// Kinship returns the reader of relations between lives.
func (r *Record) Kinship() Kinship { return Kinship{view: r.view} }

// Relations yields the relations of lives that refer to another object. Each life costs one index lookup. Relations finds
// nothing on a day whose partition is gone.
func (k Kinship) Relations(ctx context.Context, lives []Life) iter.Seq2[Relation, error] {
	return func(yield func(Relation, error) bool) {
		if err := k.relations(ctx, lives, func(found Relation) bool { return yield(found, nil) }); err != nil {
			yield(Relation{}, fmt.Errorf("read how objects of the record relate: %w", err))
		}
	}
}

func (k Kinship) relations(ctx context.Context, lives []Life, give func(Relation) bool) error {
	byID, wanted := make(map[int64]Life, len(lives)), make([]int64, 0, len(lives))
	for _, l := range lives {
		byID[l.ObjectID] = l
		wanted = append(wanted, l.ObjectID)
	}
	first := firsts[Relation]{view: k.view, pick: func(id int64, object patch.Doc) (Relation, bool) {
		relation, ok := relationOf(object)
		relation.Life = byID[id]
		return relation, ok
	}}
	found, err := first.find(ctx, wanted)
	if err != nil {
		return err
	}
	for _, each := range found {
		if !give(each) {
			return nil
		}
	}
	return nil
}

// relationOf reads the stored text, which is canonical.
func relationOf(object patch.Doc) (r Relation, ok bool) {
	r.Owners = owner.UIDs(object)
	// Only Events have one of these fields, in either API group. No other built-in kind has them.
	involved, _ := textAt(object, "/involvedObject/uid")
	regarding, _ := textAt(object, "/regarding/uid")
	r.About = cmp.Or(involved, regarding)
	return r, len(r.Owners) > 0 || r.About != ""
}
