package election

import (
	"fmt"
	"os"
)

// Name returns the name of this process among the recorders of a cluster.
func Name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return NameOf(host, os.Getpid())
}

// NameOf returns the name of a process on a host.
func NameOf(host string, pid int) string { return fmt.Sprintf("%s/%d", host, pid) }
