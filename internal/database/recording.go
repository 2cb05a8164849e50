package database

import (
	"context"
	"fmt"

	"github.com/kuberewind/kuberewind/internal/election"
)

// Recording returns the name of the recorder that records a cluster now, as election.Name does, or "" if there is none. If the database is
// not embedded, it returns a killed recorder until its term is over.
func (d *Database) Recording(ctx context.Context, db election.Reader, clusterUID string) (name string, err error) {
	if d.embedded == nil {
		return election.Leader(ctx, db, clusterUID)
	}
	holder, err := d.embedded.Holder(clusterUID)
	if err != nil || holder == "" {
		return "", err
	}
	var pid int
	var host string
	if n, _ := fmt.Sscanf(holder, "pid %d on %s", &pid, &host); n < 2 { // the holder is still writing it
		return holder, nil
	}
	return election.NameOf(host, pid), nil
}
