package delegate_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/internal/serve/delegate"
)

const uid = "11111111-2222-3333-4444-555555555555"

// liveAPI counts its requests, and can be made unavailable. A real API server cannot; test/api uses one for everything
// else.
type liveAPI struct {
	*httptest.Server

	mu      sync.Mutex // protects what follows
	asked   map[string]int
	allowed bool
	away    bool
}

func newLiveAPI(t *testing.T) *liveAPI {
	t.Helper()
	l := &liveAPI{asked: map[string]int{}, allowed: true}
	l.Server = httptest.NewTLSServer(l)
	t.Cleanup(l.Close)
	return l
}

func (l *liveAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	question := path.Base(r.URL.Path)
	l.asked[question]++
	w.Header().Set("Content-Type", "application/json")
	switch {
	case l.away:
		panic(http.ErrAbortHandler) // as a server that has ended
	case r.Header.Get("Authorization") != "Bearer known":
		w.WriteHeader(http.StatusUnauthorized)
	case question == "selfsubjectreviews":
		_ = json.NewEncoder(w).Encode(authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "jane"}}})
	default:
		_ = json.NewEncoder(w).Encode(authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: l.allowed, Reason: "by this test"}})
	}
}

// set changes the API, and returns the number of requests of each kind since the last call.
func (l *liveAPI) set(allowed, away bool) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.asked
	l.asked, l.allowed, l.away = map[string]int{}, allowed, away
	return asked
}

func (l *liveAPI) config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw})
	return &rest.Config{Host: l.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// A door is a Delegate of one cluster, with a clock that the test moves.
type door struct {
	*testing.T
	*delegate.Delegate
	now time.Time
}

func newDoor(t *testing.T, l *liveAPI) *door {
	t.Helper()
	d := &door{T: t, now: time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)}
	var err error
	d.Delegate, err = delegate.New(delegate.Options{
		Mode: delegate.Self, Clusters: map[string]*rest.Config{uid: l.config()}, Now: func() time.Time { return d.now },
	})
	require.NoError(t, err)
	return d
}

// enter asks for configmaps of a namespace, as one request does.
func (d *door) enter(token string) error {
	d.Helper()
	r := httptest.NewRequestWithContext(d.Context(), http.MethodGet, "/clusters/"+uid+"/session/live/api/v1/namespaces/shop/configmaps", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	r, err := d.Authenticate(r)
	if err != nil {
		return err
	}
	require.Empty(d, r.Header.Get("Authorization"))
	caller, _ := request.UserFrom(r.Context())
	require.Equal(d, "jane", caller.(*user.DefaultInfo).Name)
	return d.Authorize(r.Context(), uid, authorizer.AttributesRecord{User: caller, Verb: "list", Namespace: "shop", Resource: "configmaps", ResourceRequest: true})
}

func TestAnAnswerOfTheLiveAPIIsCachedForTenSeconds(t *testing.T) {
	live := newLiveAPI(t)
	d := newDoor(t, live)
	once := map[string]int{"selfsubjectreviews": 1, "selfsubjectaccessreviews": 1}
	for range 3 {
		require.NoError(t, d.enter("known"))
	}
	require.Equal(t, once, live.set(false, false), "the right was revoked")
	d.now = d.now.Add(10 * time.Second)
	require.NoError(t, d.enter("known"))
	require.Empty(t, live.set(false, false))
	d.now = d.now.Add(time.Nanosecond)
	for range 3 {
		err := d.enter("known")
		require.True(t, apierrors.IsForbidden(err), err)
		require.ErrorContains(t, err, `User "jane" cannot list resource "configmaps"`)
	}
	require.Equal(t, once, live.set(true, false), "a denial is cached as long as a permission")
	d.now = d.now.Add(10*time.Second + time.Nanosecond)
	require.NoError(t, d.enter("known"))
}

func TestARefusedTokenIsSentToTheLiveAPIOnceInTenSeconds(t *testing.T) {
	live := newLiveAPI(t)
	d := newDoor(t, live)
	for range 3 {
		err := d.enter("unknown")
		require.True(t, apierrors.IsUnauthorized(err), err)
	}
	require.NoError(t, d.enter("known"), "it is another user's token")
	require.Equal(t, map[string]int{"selfsubjectreviews": 2, "selfsubjectaccessreviews": 1}, live.set(true, false))
}

func TestWithoutTheLiveAPINoReadIsAllowedLongerThanAnswersAreCached(t *testing.T) {
	live := newLiveAPI(t)
	d := newDoor(t, live)
	require.NoError(t, d.enter("known"))
	live.set(true, true)
	require.NoError(t, d.enter("known"))
	err := d.enter("unknown")
	require.True(t, apierrors.IsServiceUnavailable(err), err)
	require.ErrorContains(t, err, "the live API of cluster "+uid+" did not say who may read")
	d.now = d.now.Add(10*time.Second + time.Nanosecond)
	for range 2 { // An unavailable API gives no answer to cache.
		err := d.enter("known")
		require.True(t, apierrors.IsServiceUnavailable(err), err)
	}
	live.set(true, false)
	require.NoError(t, d.enter("known"))
}
