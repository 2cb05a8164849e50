package api_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestThePastIsServedAsTheRealServerServesIt asks a real kube-apiserver and ours the same.
func TestThePastIsServedAsTheRealServerServesIt(t *testing.T) {
	s := startSystem(t)
	t.Run("each answer", func(t *testing.T) { sameAnswers(t, s) })
	t.Run("each output of kubectl", func(t *testing.T) { sameOutput(t, s) })
	t.Run("each cache of an informer", func(t *testing.T) { sameCaches(t, s) })
	s.requireQuiet(t)
	t.Run("who is denied", func(t *testing.T) { denied(t, s) })
}

// sameAnswers compares answers of now and of random revisions.
func sameAnswers(t *testing.T, s *system) {
	began := time.Now()
	e := newExam(t, s)
	end := e.end
	var pairs []pair
	for _, k := range append(s.compared(t), s.kind(t, "componentstatuses.v1.")) {
		pairs = append(pairs, e.now(k, end)...)
	}
	for _, name := range []string{"springs.v1.example.com", "springs.v2.example.com"} {
		pairs = append(pairs, same(s.kind(t, name), end, s.kind(t, name).path(""), asJSON))
	}
	for _, name := range []string{"daemonsets.v1.apps", "ipaddresses.v1.networking.k8s.io", "apiservices.v1.apiregistration.k8s.io", "customresourcedefinitions.v1.apiextensions.k8s.io"} {
		k := s.kind(t, name)
		pairs = append(pairs, same(k, end, k.path(""), asMetadataList), same(k, end, k.path(""), asTable), same(k, end, k.path(""), asJSON))
	}
	settings := s.kind(t, "configmaps.v1.")
	pairs = append(pairs, e.versions(settings, end)...)
	pairs = append(pairs, e.refused(settings, end)...)
	pairs = append(pairs, e.strangers(end)...)
	pairs = append(pairs, e.subresources(end)...)
	pairs = append(pairs, e.ofItself(end)...)
	e.all(pairs)
	e.atRandomRevisions()
	random := rand.New(rand.NewPCG(*seed, 2))
	var watches []watched
	for _, k := range s.compared(t) {
		if k.watched {
			watches = append(watches, e.watches(random, k, choose(random, s.cuts), end)...)
		}
	}
	for _, name := range []string{"apiservices.v1.apiregistration.k8s.io", "daemonsets.v1.apps"} {
		watches = append(watches, e.watches(random, s.kind(t, name), s.end(), end)...)
	}
	e.sameEvents(watches)
	t.Logf("%d pairs of answers compared in %s, %d differ", e.pairs, time.Since(began).Round(time.Millisecond), e.failed)
	require.GreaterOrEqual(t, e.pairs, *revisions*len(s.compared(t))*4, "too few pairs were compared")
	e.allowed.requireUsed(t)
}
