package controlplane

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// loopback is the only address that the control plane listens on.
const loopback = "127.0.0.1"

// A component that is down for a while must find its port free when it comes back. So ports lie above the well-known ones, and
// below those of outgoing connections (32768 and up on Linux).
const firstPort, lastPort = 20000, 32000

// freePort returns a port that was free a moment ago. The component that listens on it must be ready to try another.
func freePort(ctx context.Context) (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := listenOn(ctx, address(port))
		if err != nil {
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("no free port found between %d and %d on %s", firstPort, lastPort, loopback)
}

func listenOn(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", address)
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
