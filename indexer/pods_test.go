package indexer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/patch"
)

var (
	uuids      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timestamps = regexp.MustCompile(`2026-[0-9T:-]+Z`)
	addresses  = regexp.MustCompile(`10\.[0-9]+\.[0-9]+\.[0-9]+`)
	hashes     = regexp.MustCompile(`(containerd://|sha256:)[0-9a-f]+`)
)

// realPods returns n Pods of about 6 KB, made of one that a real API server served. They belong to 80 workloads, each
// with replicas, and with its own names, labels, images and variables. Replicas differ at random in all members in
// which real ones differ.
func realPods(t testing.TB, n int) []patch.Doc {
	t.Helper()
	file, err := os.ReadFile("../patch/testdata/pod-small.jsonl")
	require.NoError(t, err)
	lines := bytes.Split(bytes.TrimSpace(file), []byte("\n"))
	random := rand.New(rand.NewPCG(1, 2))
	pods := make([]patch.Doc, n)
	const workloads = 80
	for i := range pods {
		pods[i], err = patch.Canonical([]byte(realPod(random, string(lines[len(lines)-1]), i*workloads/n)))
		require.NoError(t, err)
	}
	return pods
}

func realPod(random *rand.Rand, text string, workload int) string {
	own := rand.New(rand.NewPCG(uint64(workload), 3)) // what all replicas have in common
	word := func(r *rand.Rand, n int) string {
		letters := make([]byte, n)
		for i := range letters {
			letters[i] = "bcdfghjklmnpqrstvwxz2456789"[r.IntN(27)]
		}
		return string(letters)
	}
	hex := func(r *rand.Rand, n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%x", r.IntN(16))
		}
		return b.String()
	}
	app, hash := word(own, 4+own.IntN(12)), word(own, 10)
	var env strings.Builder
	for range own.IntN(12) {
		fmt.Fprintf(&env, `{"name":"%s","value":"%s"},`, strings.ToUpper(word(own, 8)), word(own, own.IntN(40)))
	}
	ownUID := fmt.Sprintf("%s-%s-4%s-8%s-%s", hex(own, 8), hex(own, 4), hex(own, 3), hex(own, 3), hex(own, 12))
	text = strings.NewReplacer(
		"6f0a3c8e-7a43-4f0b-9b7e-0d9c64a6a5d1", "OWNER", "checkout", app, "7c9f6d7b5d", hash, "q8z4m", word(random, 5),
		`"namespace":"shop"`, fmt.Sprintf(`"namespace":"team-%d"`, workload%25), "v1.42.1", fmt.Sprintf("v%d.%d.%d", own.IntN(9), own.IntN(60), own.IntN(9)),
		`{"name":"REGION"`, env.String()+`{"name":"REGION"`, `"resourceVersion":"`, fmt.Sprintf(`"resourceVersion":"%d`, random.IntN(1e8)),
		`"nodeName":"node-a"`, fmt.Sprintf(`"nodeName":"node-%03d"`, random.IntN(400)),
	).Replace(text)
	text = uuids.ReplaceAllStringFunc(text, func(string) string {
		return fmt.Sprintf("%s-%s-4%s-8%s-%s", hex(random, 8), hex(random, 4), hex(random, 3), hex(random, 3), hex(random, 12))
	})
	text = strings.ReplaceAll(text, "OWNER", ownUID)
	text = timestamps.ReplaceAllStringFunc(text, func(string) string {
		return fmt.Sprintf("2026-%02d-%02dT%02d:%02d:%02dZ", 1+random.IntN(11), 1+random.IntN(28), random.IntN(24), random.IntN(60), random.IntN(60))
	})
	text = addresses.ReplaceAllStringFunc(text, func(string) string {
		return fmt.Sprintf("10.%d.%d.%d", random.IntN(4), random.IntN(256), random.IntN(256))
	})
	return hashes.ReplaceAllStringFunc(text, func(old string) string {
		return old[:strings.IndexAny(old, ":")+1] + hex(random, 64)
	})
}
