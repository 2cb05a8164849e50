package history

import (
	"context"

	"github.com/kuberewind/kuberewind/checkpoint"
)

// findSuccessors notes the lives that began after the point's seq and belong to it. Such a successor proves that the
// earlier life of the same name has ended, even if the recorded end seems later. The time of an end that was recorded after
// a pause often has no evidence, and counts as the end of the pause.
func (b *rebuilding) findSuccessors(ctx context.Context, v *view, t *tail) error {
	if b.point.Until <= b.point.Seq {
		return nil
	}
	var ids []int64
	for id, o := range t.objects {
		if id > b.point.Seq && o.touched() {
			ids = append(ids, id)
		}
	}
	lives, err := v.identities(ctx, b.streams, ids)
	for _, l := range lives {
		b.addSuccessor(l)
	}
	return err
}

func (b *rebuilding) addSuccessor(l *Life) {
	if b.successors == nil {
		b.successors = make(map[checkpoint.Key]int64)
	}
	if l.Stream != nil {
		b.successors[keyOf(l)] = max(b.successors[keyOf(l)], l.ObjectID)
	}
}

// replaced reports whether a life has ended because a later life of its name began.
func (b *rebuilding) replaced(l *Life) bool {
	return l != nil && l.Stream != nil && b.successors[keyOf(l)] > l.ObjectID
}

func keyOf(l *Life) checkpoint.Key {
	return checkpoint.Key{Stream: l.Stream.ID, Namespace: l.Namespace, Name: l.Name}
}
