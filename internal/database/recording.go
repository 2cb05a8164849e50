package database

import (
	"context"
	"fmt"

	"github.com/kuberewind/kuberewind/internal/election"
)

// Recording names the recorder that records a cluster now, as election.Name does. It returns "" if none does. A recorder that was killed is named
// until its term is over, unless the database is embedded.
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
	if n, _ := fmt.Sscanf(holder, "pid %d on %s", &pid, &host); n < 2 { // it was being written
		return holder, nil
	}
	return election.NameOf(host, pid), nil
}
