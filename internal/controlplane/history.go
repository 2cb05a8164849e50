package controlplane

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// registryPrefix is where kube-apiserver keeps objects.
const registryPrefix = "/registry/"

// RevisionKind says what a revision did to its key.
type RevisionKind string

// The kinds of a revision.
const (
	Create RevisionKind = "create"
	Update RevisionKind = "update"
	Delete RevisionKind = "delete"
)

// Revision is one write of one key: what a recorder that misses nothing has exactly once.
type Revision struct {
	Key  string // "/registry/…"
	Rev  int64  // the object's resource version; several keys share one if a lease expired
	Kind RevisionKind
	// Value is the stored text, nil for a delete. Most built-in types are stored as protobuf behind the four bytes "k8s\0".
	// Instances of CRDs are JSON, and so are all with --storage-media-type=application/json.
	Value []byte
	// Previous is what was stored before, nil for a create.
	Previous []byte
}

// History returns every write of an object from revision from to revision to, both included, in order. to 0 means
// the current revision, from 0 the first one. It fails if part of that has been compacted.
func (e *Etcd) History(ctx context.Context, from, to int64) ([]Revision, error) {
	var history []Revision
	err := e.EachRevision(ctx, from, to, func(revision Revision) error {
		history = append(history, revision)
		return nil
	})
	return history, err
}

// EachRevision is History for histories that are too large to hold. It calls do for each write, and ends with the first error
// that do returns.
func (e *Etcd) EachRevision(ctx context.Context, from, to int64, do func(Revision) error) error {
	current, err := e.Revision(ctx)
	if err != nil {
		return err
	}
	if to == 0 {
		to = current
	}
	if to > current {
		return fmt.Errorf("reading the history of etcd: revision %d is still to come, %d is the current one", to, current)
	}
	// Revision 1 is the empty store.
	from = max(from, 2)
	if from > to {
		return nil
	}
	err = e.use(ctx, func(client *clientv3.Client) error { return followHistory(ctx, client, from, to, do) })
	return e.wrap("reading the history of", err)
}

// Keys returns the keys of all objects at a revision. It fails if that has been compacted.
func (e *Etcd) Keys(ctx context.Context, revision int64) ([]string, error) {
	var keys []string
	err := e.use(ctx, func(client *clientv3.Client) error {
		response, err := client.Get(ctx, registryPrefix, clientv3.WithPrefix(), clientv3.WithRev(revision), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		for _, kv := range response.Kvs {
			keys = append(keys, string(kv.Key))
		}
		return nil
	})
	return keys, e.wrap("reading the keys of", err)
}

// followHistory watches all keys, not only those of objects. Every revision has a write of some key, so the revision to, or the
// first after it, always comes. Then nothing up to there is missing.
func followHistory(ctx context.Context, client *clientv3.Client, from, to int64, do func(Revision) error) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	responses := client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(from), clientv3.WithPrevKV())
	for response := range responses {
		if err := response.Err(); err != nil {
			return err
		}
		for _, event := range response.Events {
			if event.Kv.ModRevision > to {
				return nil
			}
			if err := tell(event, do); err != nil {
				return err
			}
		}
		// All writes of one revision come in one response, which may be the last.
		if last := len(response.Events) - 1; last >= 0 && response.Events[last].Kv.ModRevision == to {
			return nil
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return fmt.Errorf("the watch ended before revision %d", to)
}

func tell(event *clientv3.Event, do func(Revision) error) error {
	key := string(event.Kv.Key)
	if !strings.HasPrefix(key, registryPrefix) {
		return nil
	}
	revision := Revision{Key: key, Rev: event.Kv.ModRevision, Kind: Update, Value: event.Kv.Value}
	switch {
	case event.Type == clientv3.EventTypeDelete:
		revision.Kind, revision.Value = Delete, nil
	case event.IsCreate():
		revision.Kind = Create
	}
	if event.PrevKv != nil && revision.Kind != Create {
		revision.Previous = event.PrevKv.Value
	}
	return do(revision)
}
