package binaries

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/progress"
)

func TestAStepIsRepeatedBeforeFiveSecondsOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var output bytes.Buffer
		told, stop := progress.Watch(&output)
		wait := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		wait(time.Minute) // nothing is being done

		told.Begin("[1/3] building etcd")
		reading := &compilation{progress: told, expected: []string{"a", "b", "main"}}
		for _, chunk := range []string{"a\n", "b", "\n"} {
			_, err := reading.Write([]byte(chunk))
			require.NoError(t, err)
		}
		wait(4 * time.Second)
		_, err := reading.Write([]byte("go: downloading x\nmain\n"))
		require.NoError(t, err)
		wait(7900 * time.Millisecond)
		told.End("[1/3] built etcd")
		wait(time.Minute)
		stop()
		require.Equal(t, `[1/3] building etcd
[1/3] building etcd: package 2 of 3, b (4s)
go: downloading x
[1/3] building etcd: 3 packages compiled, linking (8s)
[1/3] building etcd: 3 packages compiled, linking (11s)
[1/3] built etcd in 11.9s
`, output.String())
	})
}
