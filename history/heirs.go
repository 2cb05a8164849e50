package history

import (
	"context"

	"github.com/kuberewind/kuberewind/checkpoint"
)

// inherit notes the lives that began after the point's seq and belong to it. The earlier life of the same name has ended by
// then, although its end may seem later. The time of an end that was only recovered later often has no evidence, and counts as
// the end of the pause.
func (b *rebuilding) inherit(ctx context.Context, v *view, t *tail) error {
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
		b.heir(l)
	}
	return err
}

func (b *rebuilding) heir(l *Life) {
	if b.heirs == nil {
		b.heirs = make(map[checkpoint.Key]int64)
	}
	if l.Stream != nil {
		b.heirs[keyOf(l)] = max(b.heirs[keyOf(l)], l.ObjectID)
	}
}

// outlived reports whether a life has ended because another of its name began.
func (b *rebuilding) outlived(l *Life) bool {
	return l != nil && l.Stream != nil && b.heirs[keyOf(l)] > l.ObjectID
}

func keyOf(l *Life) checkpoint.Key {
	return checkpoint.Key{Stream: l.Stream.ID, Namespace: l.Namespace, Name: l.Name}
}
