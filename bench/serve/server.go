package serve

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/kuberewind/kuberewind/bench/data"
)

// Options say how a Set is served.
type Options struct {
	Dir       string        // for files that hold all of the Set; Close empties the folder. Default: a temporary one
	Rate      float64       // events a second; 0 is as fast as clients read
	Gate      int           // how many events come before the second Go; 0 is all of them. At a rate there is no gate
	Window    int           // how far one resource may be ahead of another, in events. Default 2,000
	Bookmarks time.Duration // between two bookmarks of a watch. Default a minute, which is an API server's
}

// Server gives a Set to clients.
type Server struct {
	options Options
	own     bool // the folder
	state   *state
	http    *httptest.Server
	done    context.CancelFunc // ends watches
	ctx     context.Context
}

// Start spools a Set and serves it on a port of the loopback interface. The caller calls Close.
func Start(set data.Set, options Options) (_ *Server, err error) {
	options.Window = cmp.Or(options.Window, 2000)
	options.Bookmarks = cmp.Or(options.Bookmarks, time.Minute)
	if options.Rate > 0 && options.Gate > 0 {
		return nil, errors.New("serve a set of events: at a rate each comes when it is due, and none can be held back")
	}
	s := &Server{options: options}
	s.ctx, s.done = context.WithCancel(context.Background())
	if options.Dir == "" {
		if s.options.Dir, err = os.MkdirTemp("", "kuberewind-serve-"); err != nil {
			return nil, err
		}
		s.own = true
	}
	resources, first, err := spool(set, s.options.Dir, options.Gate)
	s.state = newState(resources, first, options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("spool a set of events: %w", err), s.Close())
	}
	s.http = httptest.NewUnstartedServer(s.handler())
	s.http.EnableHTTP2 = true
	s.http.StartTLS()
	return s, nil
}

// Close ends all watches, and removes the files.
func (s *Server) Close() error {
	s.done()
	if s.http != nil {
		s.http.CloseClientConnections()
		s.http.Close()
	}
	var errs []error
	for _, r := range s.state.resources {
		for _, f := range r.files {
			if f != nil {
				errs = append(errs, f.Close(), os.Remove(f.Name()))
			}
		}
	}
	if s.own {
		errs = append(errs, os.Remove(s.options.Dir))
	}
	return errors.Join(errs...)
}

// Kubeconfig is what a client needs to find the server.
func (s *Server) Kubeconfig() []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: bench, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: bench, user: {}}]
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
current-context: bench
`, s.http.URL, base64.StdEncoding.EncodeToString(ca))
}

// Go lets events be written: those before Options.Gate, and, called again, the others.
func (s *Server) Go() { s.state.begin() }

// Progress says how far the history is.
func (s *Server) Progress() Progress { return s.state.progress() }

// A Written says when an event was written, which is just before its bytes were given to the socket. At a rate it says when the
// event was due: an event that the previous one holds up has waited from then on.
type Written struct {
	Resource int // index of the Set's
	RV       uint64
	At       int64 // nanoseconds since 1970
}

// Times gives all events that were written, resource by resource.
func (s *Server) Times() []Written {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	var all []Written
	for i, r := range s.state.resources {
		for n, at := range s.state.times[i] {
			all = append(all, Written{i, r.frames[n].rv, at})
		}
	}
	return all
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /version", answer(map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.1", "platform": "linux/amd64"}))
	mux.HandleFunc("GET /openapi/v3", answer(map[string]any{"paths": map[string]any{}}))
	s.discovery(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "NotFound", "there is no such path")
	})
	return mux
}
