package apiserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A token says where a list goes on. It is of one server, whose key authenticates it: it dies with that server.
type token struct {
	Version string `json:"v"`
	Seq     int64  `json:"seq"`
	RV      string `json:"rv"`
	Start   string `json:"start"`
	Exact   bool   `json:"exact,omitempty"` // RV is older than the instant
	MAC     []byte `json:"mac"`
}

const tokenVersion = "kuberewind.io/v1"

func (c *call) sign(t token) []byte {
	mac := hmac.New(sha256.New, c.at.cluster.key[:])
	fmt.Fprintf(mac, "%q %q %q %d %q %q %t", c.at.cluster.record.Cluster().UID, c.resource.GroupVersionResource, c.namespace, t.Seq, t.RV, t.Start, t.Exact)
	return mac.Sum(nil)
}

func (c *call) writeToken(l *listing, start string) (string, error) {
	t := token{Version: tokenVersion, Seq: c.at.point.Seq, RV: l.rv, Start: start, Exact: l.exact}
	t.MAC = c.sign(t)
	text, err := json.Marshal(t)
	return base64.RawURLEncoding.EncodeToString(text), err
}

// readToken refuses what is no token with 400, and those of another list, instant or server with 410, so that clients begin again.
func (c *call) readToken() (t token, err error) {
	if rv := c.options.ResourceVersion; rv != "" && rv != "0" {
		return t, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	text, err := base64.RawURLEncoding.DecodeString(c.options.Continue)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if t.Version == "" {
		return t, apierrors.NewBadRequest("invalid continue token: continue key is not valid")
	}
	if err != nil || t.Version != tokenVersion || t.Seq != c.at.point.Seq || !hmac.Equal(t.MAC, c.sign(t)) {
		return t, apierrors.NewResourceExpired("The provided continue parameter is of another server, instant or list. Begin the list again without it.")
	}
	return t, nil
}
