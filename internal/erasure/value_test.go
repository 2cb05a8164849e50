package erasure

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/patch"
)

func hashed(text []byte) []byte { return append([]byte("0123"), text...) }

// texts calls give for each string of a JSON value, and for each name of a member.
func texts(value any, give func(string)) {
	switch value := value.(type) {
	case string:
		give(value)
	case []any:
		for _, element := range value {
			texts(element, give)
		}
	case map[string]any:
		for name, member := range value {
			give(name)
			texts(member, give)
		}
	}
}

// After the erasure, any document is valid and does not hold the value. A document that did not hold it is unchanged.
func FuzzErased(f *testing.F) {
	for _, doc := range []string{
		`{"a":"the-secret","the-secret":[1,"x the-secret the-secret"],"\u0000\"the-secret":{}}`, `"the-secret"`, `["\ud800the-secret","dGhlLXNlY3JldA=="]`,
		`{"metadata":{"name":"the-secret","uid":"the-secret"},"kind":"the-secret","last":"{\"a\":\"the-secret\"}"}`, `{}`, `1`,
	} {
		f.Add([]byte(doc), []byte("the-secret"))
	}
	f.Add([]byte(`{"a":"quo\"ted\\value","b":"{\"c\":\"quo\\\"ted\\\\value\"}","quo\"ted\\value":0}`), []byte(`quo"ted\value`))
	f.Fuzz(func(t *testing.T, text, secret []byte) {
		doc, err := patch.Canonical(text)
		v, refused := newValue(secret, hashed, nil)
		if err != nil || refused != nil || bytes.ContainsAny(secret, "[]") {
			return
		}
		v.marker = markerOf(7)
		out, err := v.everywhere(doc)
		require.NoError(t, err)
		canonical, err := patch.Canonical(out)
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(out))
		var value any
		require.NoError(t, json.Unmarshal(out, &value))
		texts(value, func(s string) { require.NotContains(t, s, string(secret)) })
		if !v.suspected(doc) {
			require.Equal(t, string(doc), string(out))
		}
		if whole, err := v.erased(doc); err == nil {
			for _, place := range identity {
				was, _ := patch.Get(doc, place)
				is, _ := patch.Get(whole, place)
				require.Equal(t, string(was), string(is), place)
			}
		}
	})
}

func TestAStringThatIsNotUnicodeIsReplacedWhole(t *testing.T) {
	v, err := newValue([]byte("the-secret"), hashed, nil)
	require.NoError(t, err)
	v.marker = markerOf(7)
	out, err := v.erased(patch.Doc(`["a\ud800the-secret","b\ud800"]`))
	require.NoError(t, err)
	require.Equal(t, `["[erased 7]","b\ud800"]`, string(out))
	require.True(t, utf8.Valid(out))
}
