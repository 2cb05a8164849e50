package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/websocket"
	"k8s.io/client-go/rest"
)

// socket collects the events of a watch over a WebSocket, one of each frame. Headlamp watches like this.
func (s *server) socket(ctx context.Context, q question, until int64) (a answer) {
	defer a.dated()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	config, err := s.socketConfig(q)
	if err != nil {
		return answer{err: err}
	}
	socket, err := config.DialContext(ctx)
	if err != nil {
		return answer{err: err}
	}
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })() // ends what waits for a frame
	defer func() { _ = socket.Close() }()                         // what was read is what counts
	return collect(func(event any) error {
		var frame []byte
		if err := websocket.Message.Receive(socket, &frame); err != nil {
			return err
		}
		decoder := json.NewDecoder(bytes.NewReader(frame))
		decoder.UseNumber()
		return decoder.Decode(event)
	}, until)
}

func (s *server) socketConfig(q question) (*websocket.Config, error) {
	target, err := url.Parse(s.root(q.root) + q.path)
	if err != nil {
		return nil, err
	}
	origin := &url.URL{Scheme: target.Scheme, Host: target.Host}
	target.Scheme, target.RawQuery = strings.Replace(target.Scheme, "http", "ws", 1), q.query.Encode()
	header := http.Header{"Accept": {q.accept}}
	if s.config.BearerToken != "" {
		header.Set("Authorization", "Bearer "+s.config.BearerToken)
	}
	tls, err := rest.TLSConfigFor(s.config)
	return &websocket.Config{Location: target, Origin: origin, Version: websocket.ProtocolVersionHybi13, TlsConfig: tls, Header: header}, err
}
