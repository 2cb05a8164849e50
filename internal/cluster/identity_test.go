package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestOneRequestChecksTheClusterForAllStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, found := 0, types.UID("a")
		i := NewIdentity("https://c", "a", func(context.Context) (types.UID, error) {
			asked++
			return found, nil
		}, slog.New(slog.DiscardHandler))
		answers := make(chan error)
		for range 10 {
			go func() {
				time.Sleep(rand.N(answerFor))
				answers <- i.Check(t.Context())
			}()
		}
		for range 10 {
			require.NoError(t, <-answers)
		}
		require.Equal(t, 1, asked)

		time.Sleep(answerFor)
		found = "b"
		var foreign *ForeignClusterError
		require.ErrorAs(t, i.Check(t.Context()), &foreign)
		require.ErrorAs(t, i.Check(t.Context()), &foreign, "and it stays so")
		require.Len(t, i.Foreign(), 1)
		require.Equal(t, "b", foreign.Found)
	})
}

func TestAClusterWhoseUIDMayNotBeReadIsStillFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "kube-system", nil)
		i := NewIdentity("https://c", "a", func(context.Context) (types.UID, error) {
			return "", fmt.Errorf("the cluster cannot be identified: %w", answer)
		}, slog.New(slog.DiscardHandler))
		require.NoError(t, i.Check(t.Context()))
		time.Sleep(answerFor)
		answer = apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "kube-system")
		require.Error(t, i.Check(t.Context()), "the cluster was just made, or another one answers")
	})
}

func TestReturnedIsClosedWhenTheServerAnswersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := error(nil)
		i := NewIdentity("https://c", "a", func(context.Context) (types.UID, error) { return "a", away }, slog.New(slog.DiscardHandler))
		check := func(err error) (returned bool) {
			heard := i.Returned()
			time.Sleep(answerFor)
			away = err
			_ = i.Check(t.Context())
			select {
			case <-heard:
				return true
			default:
				return false
			}
		}
		require.False(t, check(nil), "it was never away")
		require.False(t, check(errors.New("down")))
		require.False(t, check(errors.New("down")))
		require.True(t, check(nil))
		require.False(t, check(nil))
	})
}
