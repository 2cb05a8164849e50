package timeline

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
)

// write sends an answer as JSON. No cache may keep it.
func write(w http.ResponseWriter, r *http.Request, code int, answer any) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Add("Vary", "Accept-Encoding")
	var to io.Writer = w
	if takesGzip(r) {
		header.Set("Content-Encoding", "gzip")
		packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // BestSpeed is a valid level.
		defer packed.Close()                                //nolint:errcheck // a disconnected client needs no answer
		to = packed
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(to).Encode(answer) // A disconnected client needs no answer.
}

func takesGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.TrimSpace(name) == "gzip" {
			return strings.Trim(strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

// statusOf returns the Status that answers an error.
func statusOf(err error) *metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) && !errors.As(meaning(err), &known) {
		known = apierrors.NewInternalError(err)
	}
	s := known.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &s
}

// meaning translates an error of the record for a client.
func meaning(err error) error {
	var before *history.BeforeRecordError
	var missing *history.MissingDayError
	var refused *pgconn.ConnectError
	var database *pgconn.PgError
	var network net.Error
	switch {
	case errors.As(err, &before):
		return ask.Gone("%v", err)
	case errors.As(err, &missing):
		return ask.Gone("%v", err)
	case errors.Is(err, history.ErrEmpty):
		return ask.NotFound("%v", err)
	case errors.As(err, &refused), errors.As(err, &database) && away(database.Code), errors.As(err, &network), lost(err):
		return apierrors.NewServiceUnavailable("the database does not answer: the page retries by itself; if this persists, check PostgreSQL")
	}
	return err
}

// away reports whether a PostgreSQL error code says that the server is unavailable or accepts no connection.
func away(code string) bool {
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "53") || code == "55000"
}

// lost reports whether a connection broke while in use.
func lost(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || strings.Contains(err.Error(), "conn closed")
}
