package patch_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/patch"
)

// requireDecodesAsKubernetes compares Decode with the decoder of apimachinery, which client-go uses. Both get the text,
// canonical or not.
func requireDecodesAsKubernetes(t require.TestingT, text []byte) {
	got, err := patch.Decode(text)
	var want any
	if kjson.Unmarshal(text, &want) != nil {
		require.Error(t, err, "%q", text)
		require.Nil(t, got)
		return
	}
	require.NoError(t, err, "%q", text)
	require.Equal(t, want, got, "%q", text)
}

func TestDecodeReturnsTheSameAsKubernetes(t *testing.T) {
	for _, name := range kubernetesSeries {
		for _, text := range series(t, name) {
			requireDecodesAsKubernetes(t, text)
			requireDecodesAsKubernetes(t, canonical(t, text))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := spell(t, dialect{}.tree(t, 4))
		requireDecodesAsKubernetes(t, []byte(text))
		requireDecodesAsKubernetes(t, canonical(t, text))
	})
}

func TestDecodeReturnsTheTypeOfANumber(t *testing.T) {
	for text, want := range map[string]any{
		"0":                       int64(0),
		"-0":                      int64(0),
		"9223372036854775807":     int64(math.MaxInt64),
		"9223372036854775808":     float64(1 << 63),
		"-9223372036854775808":    int64(math.MinInt64),
		"-9223372036854775809":    float64(-1 << 63),
		"1.0":                     1.0,
		"-0.0":                    math.Copysign(0, -1),
		"1e3":                     1000.0,
		"1E-400":                  0.0,
		"1.7976931348623157e308":  math.MaxFloat64,
		"4.9406564584124654e-324": math.SmallestNonzeroFloat64,
		"0.1":                     0.1,
	} {
		got, err := patch.Decode(patch.Doc(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		requireDecodesAsKubernetes(t, []byte(text))
	}
	for _, text := range []string{"1e309", "-1e309", "[1,1e400]", `{"a":` + strings.Repeat("9", 400) + "}"} {
		got, err := patch.Decode(patch.Doc(text))
		require.ErrorContains(t, err, "too large for a float64", text)
		require.Nil(t, got)
		requireDecodesAsKubernetes(t, []byte(text))
	}
}

func TestDecodeReadsEveryKindOfString(t *testing.T) {
	for text, want := range map[string]any{
		`""`:                             "",
		`"\"\\\/\b\f\n\r\t\u0000\u00e9"`: "\"\\/\b\f\n\r\t\x00é",
		`"\ud83d\ude00"`:                 "😀",
		`"\ud83d\ud83d\ude00\ude00x"`:    "\ufffd😀\ufffdx",
		"\"\xff\xc3\\u00a9\"":            "\ufffd\ufffd©",
		"\"\xed\xa0\x80\\ud800\"":        "\ufffd\ufffd\ufffd\ufffd",
		"[\"a\",\"\xff\"]":               []any{"a", "\ufffd"},
		`{"\ud800":1,"\udfff":2}`:        map[string]any{"\ufffd": int64(2)},
		`{"a":{"b":1},"\u0061":{"c":2}}`: map[string]any{"a": map[string]any{"c": int64(2)}},
		` [ null , true,false,{},[] ] `:  []any{nil, true, false, map[string]any{}, []any{}},
	} {
		got, err := patch.Decode(patch.Doc(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		requireDecodesAsKubernetes(t, []byte(text))
	}
}

func TestDecodeHasTheSameLimitsAsKubernetes(t *testing.T) {
	for _, depth := range []int{10_000, 10_001} {
		for _, pair := range []string{"[]", "{}"} {
			open, shut := pair[:1], pair[1:]
			if open == "{" {
				open = `{"a":`
			}
			text := strings.Repeat(open, depth-1) + pair + strings.Repeat(shut, depth-1)
			_, err := patch.Decode(patch.Doc(text))
			require.Equal(t, depth > 10_000, err != nil)
			var value any
			require.Equal(t, err != nil, kjson.Unmarshal([]byte(text), &value) != nil)
		}
	}
}

func TestADecodedValueOutlivesItsText(t *testing.T) {
	text := []byte(`{"a":["b","\n"]}`)
	got, err := patch.Decode(text)
	require.NoError(t, err)
	clear(text)
	require.Equal(t, map[string]any{"a": []any{"b", "\n"}}, got)
}
