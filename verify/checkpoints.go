package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/patch"
)

// checkpoint compares the next checkpoint with the folded deltas up to its seq.
func (v *recordWalk) checkpoint(ctx context.Context) error {
	info := v.checkpoints[0]
	v.checkpoints = v.checkpoints[1:]
	if info.Seq < v.expected-1 || info.Seq >= v.expected {
		return v.found(CheckCheckpoint, info.Seq, "checkpoint %d is of a seq that is not on record", info.Seq)
	}
	v.counts.Checkpoints++
	store := checkpoint.Store{DB: v.record.Pool(), Cluster: v.record.Cluster().Number}
	wrong := func(text string) error {
		if there, err := store.Has(ctx, info.Seq); err != nil || !there {
			return err // a recorder deleted it meanwhile
		}
		return v.found(CheckCheckpoint, info.Seq, "checkpoint %d: %s", info.Seq, text)
	}
	found, err := store.Open(ctx, info, checkpoint.Scope{})
	if errors.Is(err, checkpoint.ErrUnusable) {
		return wrong(err.Error())
	}
	if err != nil {
		return err
	}
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	objects := int64(0)
	for _, number := range found.Blocks {
		data, err := found.Block(ctx, number)
		if err == nil {
			var records []checkpoint.Record
			records, err = decoder.Block(data)
			for i := range records {
				objects++
				v.counts.CheckpointObjects++
				if text := v.differs(&records[i]); text != "" {
					if err := wrong(text); err != nil {
						return err
					}
				}
			}
		}
		if errors.Is(err, checkpoint.ErrUnusable) || errors.Is(err, checkpoint.ErrBlock) {
			return wrong(fmt.Sprintf("block %d: %v", number, err))
		}
		if err != nil {
			return err
		}
	}
	if objects != int64(len(v.objects)) {
		return wrong(fmt.Sprintf("it holds %d objects, but %d were alive", objects, len(v.objects)))
	}
	return nil
}

func (v *recordWalk) differs(r *checkpoint.Record) string {
	o := v.objects[r.ObjectID]
	switch {
	case o == nil:
		return fmt.Sprintf("it holds object %d (%s/%s), which was not alive", r.ObjectID, r.Namespace, r.Name)
	case len(r.Doc) == 0 || o.doc == nil:
		return "" // damaged; another finding reports it
	case r.Seq != o.seq || r.Digest != o.digest || r.Stream != o.stream:
		return fmt.Sprintf("of object %d (%s/%s) it holds another version than seq %d", r.ObjectID, r.Namespace, r.Name, o.seq)
	case patch.Digest(r.Doc) != r.Digest:
		return fmt.Sprintf("object %d (%s/%s) has another digest", r.ObjectID, r.Namespace, r.Name)
	}
	return ""
}
