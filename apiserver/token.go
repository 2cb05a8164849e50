package apiserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A token says where a list continues. It is valid only on the server that signed it, and only until that server ends.
type token struct {
	Version string `json:"v"`
	Seq     int64  `json:"seq"`
	RV      string `json:"rv"`
	Start   string `json:"start"`
	Exact   bool   `json:"exact,omitempty"` // RV is older than the instant
	MAC     []byte `json:"mac"`
}

const tokenVersion = "kuberewind.io/v1"

// tokens signs and verifies the tokens of one list.
type tokens struct {
	key       []byte // of the server
	cluster   string // the UID
	resource  schema.GroupVersionResource
	namespace string
	seq       int64 // of the instant
}

func (c *call) tokens() *tokens {
	return &tokens{
		key: c.at.cluster.key[:], cluster: c.at.cluster.record.Cluster().UID, resource: c.resource.GroupVersionResource,
		namespace: c.namespace, seq: c.at.point.Seq,
	}
}

func (s *tokens) sign(t token) []byte {
	mac := hmac.New(sha256.New, s.key)
	fmt.Fprintf(mac, "%q %q %q %d %q %q %t", s.cluster, s.resource, s.namespace, t.Seq, t.RV, t.Start, t.Exact)
	return mac.Sum(nil)
}

// write makes the token that continues a list at a key.
func (s *tokens) write(l *listing, start string) (string, error) {
	t := token{Version: tokenVersion, Seq: s.seq, RV: l.rv, Start: start, Exact: l.exact}
	t.MAC = s.sign(t)
	text, err := json.Marshal(t)
	return base64.RawURLEncoding.EncodeToString(text), err
}

// read refuses an invalid token with 400. It refuses a token of another list, instant or server with 410, so that clients
// start the list again.
func (s *tokens) read(options *metainternal.ListOptions) (t token, err error) {
	if rv := options.ResourceVersion; rv != "" && rv != "0" {
		return t, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	text, err := base64.RawURLEncoding.DecodeString(options.Continue)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if t.Version == "" {
		return t, apierrors.NewBadRequest("invalid continue token: continue key is not valid")
	}
	if err != nil || t.Version != tokenVersion || t.Seq != s.seq || !hmac.Equal(t.MAC, s.sign(t)) {
		return t, apierrors.NewResourceExpired("The provided continue parameter belongs to another server, instant or list. Start the list again without it.")
	}
	return t, nil
}
