package kube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// page decodes the body of one list response while it arrives.
type page struct {
	*scanner
	resource Resource
	most     int64 // the most bytes that the page may take in memory
	list     *List
	found    bool   // an items member was seen
	items    []cut  // objects whose text still lacks kind or apiVersion
	status   string // message of a Status that the server sent instead of a list
}

// cut is an item with the type fields of its own text.
type cut struct {
	object *Object
	own    metav1.TypeMeta
}

// decodePage reads one page of a list. limit bounds the bytes of one item, most those of the page. The error concerns the
// page as a whole.
func decodePage(body io.Reader, resource Resource, limit, most int64) (*List, error) {
	p := &page{scanner: newScanner(body, limit), resource: resource, most: most, list: &List{}}
	if _, err := p.members(p.member); err != nil {
		return nil, p.fault(err)
	}
	if !p.found {
		return nil, fmt.Errorf("list of %s: the response is a %s without items%s", resource, describe(p.list.TypeMeta), p.status)
	}
	if err := p.end(); err != nil {
		return nil, p.fault(err)
	}
	for _, item := range p.items {
		p.complete(item)
	}
	return p.list, nil
}

// fault adds the context to an error of the stream. It turns an end within the page into an io.ErrUnexpectedEOF.
func (p *page) fault(err error) error {
	if large := (*PageTooLargeError)(nil); errors.As(err, &large) {
		return large
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("list of %s: after %d items: %w", p.resource, len(p.list.Items), err)
}

// end returns an error if more text follows the list.
func (p *page) end() error {
	_, err := p.dec.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return errors.New("more JSON follows the list")
	}
	return err
}

func (p *page) member(name []byte) error {
	switch string(name) {
	case "apiVersion":
		return p.decode(&p.list.APIVersion)
	case "kind":
		return p.decode(&p.list.Kind)
	case "metadata":
		return p.listMeta()
	case "items":
		return p.each()
	case "message":
		var message string
		err := p.decode(&message)
		p.status = ": " + message
		return err
	}
	return p.skip()
}

func (p *page) listMeta() error {
	var m struct {
		ResourceVersion    string `json:"resourceVersion"`
		Continue           string `json:"continue"`
		RemainingItemCount *int64 `json:"remainingItemCount"`
	}
	err := p.decode(&m)
	p.list.ListMeta = metav1.ListMeta{ResourceVersion: m.ResourceVersion, Continue: m.Continue, RemainingItemCount: m.RemainingItemCount}
	return err
}

// each reads the items. It reads null as an empty list.
func (p *page) each() error {
	p.found = true
	switch kind := p.dec.PeekKind(); kind {
	case jsontext.KindNull:
		return p.skip()
	case jsontext.KindBeginArray:
	default:
		if err := p.skip(); err != nil {
			return err
		}
		return fmt.Errorf("items is a JSON %s", kind)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	for index := 0; p.dec.PeekKind() != jsontext.KindEndArray; index++ {
		if err := p.one(index); err != nil {
			return err
		}
		if items := int64(index + 1); p.dec.InputOffset()+items*itemRoom > p.most {
			return &PageTooLargeError{Resource: p.resource, Limit: p.most, Items: items}
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

// one reads one item. If the item itself is faulty, one keeps the error for a gap (I3) and continues.
func (p *page) one(index int) error {
	p.input.mark(p.dec.InputOffset())
	object := &Object{}
	where, err := p.item(object)
	if bad := (*decodeError)(nil); errors.As(err, &bad) {
		p.list.undecodable = append(p.list.undecodable, &UndecodableError{
			Resource: p.resource, Namespace: object.Namespace, Name: object.Name, Index: index, Err: bad.err})
		return nil
	}
	if err != nil {
		return nameFrame(err, object)
	}
	p.list.Items = append(p.list.Items, object)
	if object.APIVersion != "" && object.Kind != "" {
		object.JSON = p.input.copyOf(where.start, where.end, 0)
		return nil
	}
	object.JSON = p.input.copyOf(where.start, where.end, typeRoom(p.resource))
	p.items = append(p.items, cut{object, object.TypeMeta})
	return nil
}

// typeRoom returns the most bytes that an item's type takes in its text.
func typeRoom(r Resource) int {
	return len(`,"apiVersion":"/","kind":""`) + len(r.Group) + len(r.Version) + len(r.Kind) + 8
}

// complete adds the missing type fields to the item. They go to the end, where they override an empty member of the same
// name.
func (p *page) complete(item cut) {
	o := item.object
	text := o.JSON[:len(o.JSON)-1]
	add := func(member, value string) {
		if len(bytes.TrimSpace(text[1:])) > 0 {
			text = append(text, ',')
		}
		text = append(append(text, '"'), member...)
		text, _ = jsontext.AppendQuote(append(text, '"', ':'), value)
	}
	if item.own.APIVersion == "" {
		o.APIVersion = p.apiVersion()
		add("apiVersion", o.APIVersion)
	}
	if item.own.Kind == "" {
		o.Kind = p.kind()
		add("kind", o.Kind)
	}
	o.JSON = append(text, '}')
}

func (p *page) apiVersion() string {
	if p.list.APIVersion != "" {
		return p.list.APIVersion
	}
	return p.resource.GroupVersion().String()
}

// kind returns the resource's kind from discovery, else the list's kind without "List".
func (p *page) kind() string {
	if p.resource.Kind != "" {
		return p.resource.Kind
	}
	return strings.TrimSuffix(p.list.Kind, "List")
}

// describe returns, for example, "v1 Status".
func describe(t metav1.TypeMeta) string {
	if t.Kind == "" {
		return "JSON object without kind"
	}
	return t.APIVersion + " " + t.Kind
}

// nameFrame adds the object's name to a FrameTooLargeError.
func nameFrame(err error, o *Object) error {
	if large := (*FrameTooLargeError)(nil); errors.As(err, &large) {
		large.Namespace, large.Name = o.Namespace, o.Name
	}
	return err
}
