package badinput_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/config"
	kuberewind "github.com/kuberewind/kuberewind/internal/recorder"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// patience is many times what anything here takes on a busy machine.
const patience = recordertest.Patience

// recording is a recorder that runs in this process.
type recording struct {
	key  string // file of the redaction key
	log  *logbook
	stop context.CancelFunc
	done chan struct{}
	err  error // after done
}

// record starts a recorder. It ends with the test at the latest.
func record(t *testing.T, s *server, database string, adapt ...func(*config.Config)) *recording {
	t.Helper()
	cfg := config.Default()
	cfg.Kubeconfig, cfg.Database, cfg.DataDir, cfg.Listen = s.kubeconfig(t), database, t.TempDir(), ""
	for _, f := range adapt {
		f(&cfg)
	}
	require.NoError(t, cfg.Validate())
	r := &recording{key: cfg.KeyFile(), log: newLogbook(), done: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.done)
		r.err = kuberewind.Run(ctx, cfg, slog.New(slog.NewTextHandler(r.log, nil)))
	}()
	t.Cleanup(func() {
		r.stop()
		<-r.done
		if t.Failed() {
			t.Logf("log of the recorder, which ended with %v:\n%s", r.err, r.log)
		}
	})
	return r
}

// begin starts a recorder and waits until it is recording.
func begin(t *testing.T, s *server, database string, adapt ...func(*config.Config)) *recording {
	t.Helper()
	r := record(t, s, database, adapt...)
	r.await(t, "msg=recording")
	return r
}

// end stops the recorder as SIGTERM does.
func (r *recording) end(t *testing.T) {
	t.Helper()
	r.stop()
	select {
	case <-r.done:
	case <-time.After(patience):
		t.Fatal("the recorder did not stop")
	}
	require.NoError(t, r.err)
}

// sameKey lets a recorder follow another one, with its key.
func sameKey(before *recording) func(*config.Config) {
	return func(cfg *config.Config) { cfg.RedactionKeyFile = before.key }
}

// await waits for a line of the log in which all of the words stand, and returns it.
func (r *recording) await(t *testing.T, words ...string) string {
	t.Helper()
	deadline := time.After(patience)
	for {
		line, news := r.log.find(words)
		if line != "" {
			return line
		}
		select {
		case <-news:
		case <-r.done:
			if line, _ := r.log.find(words); line != "" {
				return line
			}
			t.Fatalf("the recorder ended (%v) and never said %q", r.err, words)
		case <-deadline:
			t.Fatalf("the recorder did not say %q", words)
		}
	}
}

// listening has a recorder listen.
func listening(cfg *config.Config) { cfg.Listen = "127.0.0.1:0" }

// metrics asks a recorder that listens.
func (r *recording) metrics(t *testing.T) string {
	t.Helper()
	_, address, _ := strings.Cut(r.await(t, "serving /metrics", "address="), "address=")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + strings.TrimSpace(address) + "/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// logbook keeps what is logged.
type logbook struct {
	mu    sync.Mutex // protects what follows
	lines []string
	news  chan struct{} // closed and replaced with each line
}

func newLogbook() *logbook { return &logbook{news: make(chan struct{})} }

// Write implements io.Writer; slog's handlers write a line at once.
func (l *logbook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	close(l.news)
	l.news = make(chan struct{})
	return len(line), nil
}

func (l *logbook) find(words []string) (line string, news <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if containsAll(line, words) {
			return line, l.news
		}
	}
	return "", l.news
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}
