package recorder

import (
	"context"
	"log/slog"

	"github.com/kuberewind/kuberewind/internal/telemetry"
)

// server serves metrics and health until close, in a standby as well. It has one goroutine.
type server struct {
	http   *telemetry.Server
	ended  chan struct{} // closed when http has ended
	reason error         // why http ended; read it only after ended is closed
}

// listen serves at an address. For an empty address it returns nil.
func listen(address string, metrics *telemetry.Metrics, ready func() (string, error), log *slog.Logger) (*server, error) {
	if address == "" {
		return nil, nil
	}
	healthy := func() (string, error) { return "ok", nil }
	http, err := telemetry.Listen(address, metrics, healthy, ready)
	if err != nil {
		return nil, err
	}
	log.Info("serving /metrics, /healthz and /readyz", "address", http.Address())
	s := &server{http: http, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.reason = http.Serve(context.Background())
	}()
	return s, nil
}

// wait returns when ctx or the server ends.
func (s *server) wait(ctx context.Context) error {
	select {
	case <-s.ended:
		return s.reason
	case <-ctx.Done():
		return nil
	}
}

func (s *server) close() {
	if s != nil {
		s.http.Close()
		<-s.ended
	}
}
