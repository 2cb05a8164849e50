package spooling

import (
	"context"
	"errors"
	"fmt"

	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// ErrWaits says that a recorder writes the entries of a spool, or would if it were started there.
var ErrWaits = errors.New("deltas wait in the spool")

// HasLeftovers reports whether the folder of a cluster's spool holds entries that no recorder will write. The next recorder
// would set them aside, or delete them if all are recorded. The error is ErrWaits if a recorder will write them. HasLeftovers
// changes nothing. A recorder that starts meanwhile waits for it.
func HasLeftovers(ctx context.Context, db postgres.Queryer, dir, clusterUID string, key []byte) (left bool, err error) {
	c, err := spool.Inspect(dir)
	if err != nil || c.Bytes == 0 {
		return false, err
	}
	s, err := spool.Open(spool.Options{Dir: dir, ReadOnly: true, Shared: true})
	if errors.Is(err, spool.ErrLocked) {
		return false, fmt.Errorf("%w of a recorder that runs: %w", ErrWaits, err)
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	head, noted, err := postgres.ReadOffset(ctx, db, clusterUID)
	if err != nil {
		return false, err
	}
	from, err := FirstUnrecorded(s, Owner{Cluster: clusterUID, Key: key}, head, noted)
	if err != nil || from >= s.Next() {
		return true, nil
	}
	return false, fmt.Errorf("%w: a recorder that is started here writes them", ErrWaits)
}
