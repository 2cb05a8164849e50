package auditlog

import (
	"bufio"
	"cmp"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/jsonlines"
)

// Annotations of an event.
const (
	InstantAnnotation = "kuberewind.io/instant" // the instant of the answer; for a watch of a session, its first instant
	SessionAnnotation = "kuberewind.io/session" // the session whose clock chose the instant
)

// seqHeader has the seq of an answer.
const seqHeader = "Kuberewind-Seq"

// resolver parses URLs as an API server does.
var resolver = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// root matches the part of a path that names an API root: its cluster, and its instant or session.
var root = regexp.MustCompile(`^/clusters/[^/]+/(?:shifted/)?(at|session)/([^/]+)`)

// Log is an open audit log.
type Log struct{ file *jsonlines.File }

// Open opens a file for appending. Only its owner can read a new file.
func Open(name string) (*Log, error) {
	file, err := jsonlines.Open("audit log", name)
	if err != nil {
		return nil, err
	}
	return &Log{file: file}, nil
}

// Close writes the remaining lines, and closes the file.
func (l *Log) Close() error { return l.file.Close() }

// Watch records the requests to next, and the codes of its answers.
func (l *Log) Watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := l.file.Ready(); err != nil {
			serve.WriteStatus(w, &metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: err.Error(),
			})
			return
		}
		event := newEvent(r)
		w.Header().Set(auditv1.HeaderAuditID, string(event.AuditID))
		answer := &answer{ResponseWriter: w}
		event.Stage = auditv1.StagePanic // until next has returned
		defer func() {
			event.ResponseStatus = answer.status()
			answered(event, w.Header())
			event.StageTimestamp = metav1.NowMicro()
			_ = l.file.Append(event) // If the line cannot be written, the log keeps it and refuses the next request.
		}()
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(answer), r)
		event.Stage = auditv1.StageResponseComplete
	})
}

// answered notes the seq of a session's answer.
func answered(e *auditv1.Event, header http.Header) {
	if seq := header.Get(seqHeader); seq != "" && e.Annotations[SessionAnnotation] != "" {
		e.Annotations[InstantAnnotation] = "seq:" + seq
	}
}

func newEvent(r *http.Request) *auditv1.Event {
	e := &auditv1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Event"},
		Level:    auditv1.LevelMetadata, AuditID: types.UID(uuid.NewString()),
		RequestURI: r.URL.RequestURI(), UserAgent: r.UserAgent(), RequestReceivedTimestamp: metav1.NewMicroTime(time.Now()),
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		e.SourceIPs = []string{host}
	}
	if caller, ok := request.UserFrom(r.Context()); ok {
		e.User = authenticationv1.UserInfo{Username: caller.GetName(), UID: caller.GetUID(), Groups: caller.GetGroups()}
	}
	describe(e, r)
	return e
}

// describe notes the request, and its instant.
func describe(e *auditv1.Event, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, timeline) {
		e.Verb = strings.ToLower(r.Method)
		describeQuery(e, r.URL.Query())
		return
	}
	asked := r.Clone(r.Context())
	if found := root.FindStringSubmatch(r.URL.Path); found != nil {
		asked.URL.Path = r.URL.Path[len(found[0]):]
		name := map[string]string{"at": InstantAnnotation, "session": SessionAnnotation}[found[1]]
		e.Annotations = map[string]string{name: found[2]}
	}
	info, _ := resolver.NewRequestInfo(asked) // Even with an error, info has the parsed parts.
	e.Verb = info.Verb
	if info.IsResourceRequest {
		e.ObjectRef = &auditv1.ObjectReference{
			APIGroup: info.APIGroup, APIVersion: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource,
			Namespace: info.Namespace, Name: info.Name,
		}
	}
}

// timeline is the prefix of the page's requests. Their query names the instant and the object.
const timeline = "/timeline/"

// describeQuery ignores a parameter that occurs twice, because its meaning is ambiguous.
func describeQuery(e *auditv1.Event, query url.Values) {
	one := func(name string) string {
		if len(query[name]) == 1 {
			return query.Get(name)
		}
		return ""
	}
	if instant := cmp.Or(one("at"), between(one("a"), one("b")), between(moment(one("from")), moment(one("to")))); instant != "" {
		e.Annotations = map[string]string{InstantAnnotation: instant}
	}
	resource := schema.ParseGroupResource(one("resource"))
	object := auditv1.ObjectReference{
		APIGroup: resource.Group, Resource: resource.Resource, Namespace: one("namespace"), Name: one("name"), UID: types.UID(one("uid")),
	}
	if object != (auditv1.ObjectReference{}) {
		e.ObjectRef = &object
	}
}

// between returns the range from one instant to another, "" if both are "".
func between(from, to string) string {
	if from == "" && to == "" {
		return ""
	}
	return from + ".." + to
}

// moment returns the time of an end of a window, which is in milliseconds. If the value is no number, the server has
// refused the request.
func moment(text string) string {
	milli, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text
	}
	return time.UnixMilli(milli).UTC().Format(time.RFC3339Nano)
}

// answer records the code of an answer.
type answer struct {
	http.ResponseWriter
	code int // 0 until the answer begins
}

// Unwrap serves http.ResponseController and responsewriter.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(code int) {
	if a.code == 0 && code >= http.StatusOK { // an informational code is followed by another one
		a.code = code
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(body []byte) (int, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	return a.ResponseWriter.Write(body)
}

// Hijack is called for a WebSocket.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.code = http.StatusSwitchingProtocols
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// status returns the status of the answer. If a handler writes nothing, net/http answers with 200.
func (a *answer) status() *metav1.Status {
	status := &metav1.Status{Status: metav1.StatusSuccess, Code: int32(cmp.Or(a.code, http.StatusOK))}
	if a.code >= http.StatusBadRequest {
		status.Status = metav1.StatusFailure
	}
	return status
}
