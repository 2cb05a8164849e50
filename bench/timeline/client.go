package timeline

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A client asks a server what the page asks.
type client struct {
	page  string
	token string
	http  *http.Client
}

var errAnswer = errors.New("this is not the answer that is measured")

// newClient exchanges a code of the server for a token.
func newClient(ctx context.Context, s *served) (*client, error) {
	c := &client{page: s.Page, http: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	code, err := c.read(ctx, http.MethodGet, s.Codes, "")
	if err != nil {
		return nil, err
	}
	answer, err := c.read(ctx, http.MethodPost, s.Page+"code/v1/exchange", `{"code":"`+string(code)+`"}`)
	if err != nil {
		return nil, err
	}
	var given struct{ Token string }
	if err := json.Unmarshal(answer, &given); err != nil {
		return nil, err
	}
	c.token = given.Token
	return c, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// read gives the bytes of an answer as they came.
func (c *client) read(ctx context.Context, method, url, body string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
		r.Header.Set("Accept-Encoding", "gzip")
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w: %s of %s: %s", errAnswer, response.Status, r.URL.Path, unpacked(text))
	}
	return text, err
}

// unpacked is a text, whether it is compressed or not.
func unpacked(text []byte) []byte {
	reader, err := gzip.NewReader(strings.NewReader(string(text)))
	if err != nil {
		return text
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		return text
	}
	return plain
}

// A reply is what is read of an answer of the timeline, beside what only some answers have.
type reply struct {
	Next  string // of a strip that is not counted to its end
	Older string // of lanes that are not
	Lanes []lane
}

// A lane is one of an answer.
type lane struct {
	ID  int64
	UID string
}

// timed asks one shape. The time is until the last byte: the browser unpacks it by itself.
func (c *client) timed(ctx context.Context, shape string, query url.Values) (text []byte, took time.Duration, err error) {
	began := time.Now()
	text, err = c.read(ctx, http.MethodGet, c.page+"timeline/v1/"+shape+"?"+query.Encode(), "")
	return text, time.Since(began), err
}

// ask asks a strip, or lanes, and reads the answer.
func (c *client) ask(ctx context.Context, shape string, query url.Values) (r reply, a asking, err error) {
	text, took, err := c.timed(ctx, shape, query)
	if err != nil {
		return r, a, err
	}
	if err := json.Unmarshal(unpacked(text), &r); err != nil {
		return r, a, fmt.Errorf("%w: %s: %w", errAnswer, shape, err)
	}
	return r, asking{first: took, whole: took, answers: 1, size: len(text)}, nil
}

// once asks one question, whose first answer is all that is wanted.
func (c *client) once(ctx context.Context, shape string, query url.Values) (asking, error) {
	text, took, err := c.timed(ctx, shape, query)
	return asking{first: took, whole: took, answers: 1, size: len(text)}, err
}

// An asking is how one question went, to its end.
type asking struct {
	first, whole time.Duration
	answers      int
	size         int
}

// enough bounds a question that is counted in many answers. One that takes longer counts as having taken so long.
const enough = 10 * time.Second

// wholly asks until all is counted.
func (c *client) wholly(ctx context.Context, shape string, query url.Values) (asking, error) {
	r, a, err := c.ask(ctx, shape, query)
	for err == nil && r.Next != "" && a.whole < enough {
		query.Set("cursor", r.Next)
		var more asking
		r, more, err = c.ask(ctx, shape, query)
		a = a.and(more)
	}
	return a, err
}

// and is a question with what was asked after it.
func (a asking) and(more asking) asking {
	return asking{first: a.first, whole: a.whole + more.whole, answers: a.answers + more.answers, size: a.size + more.size}
}
