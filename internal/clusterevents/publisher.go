// Package clusterevents writes Events about the recorder to the recorded cluster. Operators look there when a Pod has a problem. The package
// uses client-go's EventBroadcaster.
//
// # What it guarantees
//
// Writing an Event never delays recording. If an Event cannot be written for about two minutes, the broadcaster drops it. If the right is
// missing, the package logs that once.
//
// The broadcaster merges similar Events and limits them: 25 at once, then one in five minutes. The recorder records each Event as a delta, so
// Events must stay few.
//
// # Goroutines
//
// Close ends the goroutines of client-go's broadcaster.
package clusterevents

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// Component is the source of the Events.
const Component = "kuberewind-recorder"

// Options set the object and the namespace of the Events.
type Options struct {
	Config    *rest.Config
	Namespace string
	// Pod and PodUID are the recorder's own; without them, the Events are about the namespace.
	Pod    string
	PodUID types.UID
	Host   string
	Log    *slog.Logger
}

// Publisher writes Events. A nil Publisher writes none.
type Publisher struct {
	about    *corev1.ObjectReference
	recorder record.EventRecorder
	stop     context.CancelFunc
}

// New returns a Publisher. It sends no request yet. The Publisher uses its own connections, so that no list delays an Event.
func New(o Options) (*Publisher, error) {
	client, err := typedcorev1.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("client for Events in namespace %s: %w", o.Namespace, err)
	}
	p := &Publisher{about: &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: o.Namespace, Namespace: o.Namespace}}
	if o.Pod != "" {
		p.about.Kind, p.about.Name, p.about.UID = "Pod", o.Pod, o.PodUID
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&sink{namespace: o.Namespace, log: o.Log, events: &typedcorev1.EventSinkImpl{Interface: client.Events("")}})
	p.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: Component, Host: o.Host})
	p.stop = stop
	return p, nil
}

// Normal writes an Event about a normal state.
func (p *Publisher) Normal(reason, message string) { p.write(corev1.EventTypeNormal, reason, message) }

// Warning writes an Event that an operator should look at.
func (p *Publisher) Warning(reason, message string) {
	p.write(corev1.EventTypeWarning, reason, message)
}

// maxMessage is the maximum length of a message that API servers accept, in bytes.
const maxMessage = 1024

func (p *Publisher) write(kind, reason, message string) {
	if p == nil {
		return
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
	}
	p.recorder.Event(p.about, kind, reason, message)
}

// Close drops the Events that have not been written yet.
func (p *Publisher) Close() {
	if p != nil {
		p.stop()
	}
}

// sink writes Events, and logs once that they are refused.
type sink struct {
	namespace string
	log       *slog.Logger
	events    record.EventSink
	once      sync.Once
}

// noted logs, once, an error that says that Events are refused. It ignores errors that client-go retries: temporary ones, such as those of a
// busy server, and the patch of an Event that has expired.
func (s *sink) noted(event *corev1.Event, err error) (*corev1.Event, error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) {
		s.refused(err)
	}
	return event, err
}

func (s *sink) refused(err error) {
	s.once.Do(func() {
		s.log.Warn("Events about the recorder are refused; this is logged only once", "namespace", s.namespace, "error", err,
			"advice", `"recorder check" says what to grant`)
	})
}

// Create implements record.EventSink.
func (s *sink) Create(event *corev1.Event) (*corev1.Event, error) {
	created, err := s.noted(s.events.Create(event))
	if apierrors.IsNotFound(err) {
		s.refused(err) // The namespace does not exist.
	}
	return created, err
}

// Update implements record.EventSink.
func (s *sink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.noted(s.events.Update(event))
}

// Patch implements record.EventSink.
func (s *sink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.noted(s.events.Patch(event, data))
}
