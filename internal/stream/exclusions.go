package stream

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/sink/postgres"
)

// exclusions collects the lives that a label filter excludes, and the excluded lives that have ended. The pump writes
// them with the position that passes the event, or before it.
type exclusions struct {
	mu    sync.Mutex                  // protects items
	items map[types.UID]postgres.Item // the last item of each life
}

func (e *exclusions) add(item postgres.Item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.items == nil {
		e.items = map[types.UID]postgres.Item{}
	}
	e.items[item.UID] = item
}

func (e *exclusions) take() []postgres.Item {
	e.mu.Lock()
	defer e.mu.Unlock()
	items := slices.Collect(maps.Values(e.items))
	e.items = nil
	return items
}

// detach takes back the items of an entry that was not enqueued. A newer decision about the same life has precedence.
func (e *exclusions) detach(attached any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.items == nil {
		e.items = map[types.UID]postgres.Item{}
	}
	for _, item := range attached.([]postgres.Item) {
		if _, newer := e.items[item.UID]; !newer {
			e.items[item.UID] = item
		}
	}
}

// attach returns the collected items for the entry that is enqueued next, nil if there are none.
func (e *exclusions) attach() any {
	if items := e.take(); items != nil {
		return items
	}
	return nil
}
