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

// page decodes the body of one list response as it arrives.
type page struct {
	*scanner
	resource Resource
	most     int64 // bytes that the page may take in memory
	list     *List
	found    bool   // an items member was seen
	items    []cut  // objects whose text lacks kind or apiVersion as yet
	status   string // of a Status that was served in place of a list
}

// cut is an item and what of its own type it carried.
type cut struct {
	object *Object
	own    metav1.TypeMeta
}

// decodePage reads one page of a list, with items of up to limit bytes and up to most bytes in all. The error is about the
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

// fault words an error of the stream, and makes an end within the page an
// io.ErrUnexpectedEOF.
func (p *page) fault(err error) error {
	if large := (*PageTooLargeError)(nil); errors.As(err, &large) {
		return large
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("list of %s: after %d items: %w", p.resource, len(p.list.Items), err)
}

// end makes sure that nothing follows the list.
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

// each reads the items; null stands for none.
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

// one reads one item. Its own faults are kept for gaps (I3).
func (p *page) one(index int) error {
	p.tape.mark(p.dec.InputOffset())
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
		object.JSON = p.tape.copyOf(where.start, where.end, 0)
		return nil
	}
	object.JSON = p.tape.copyOf(where.start, where.end, typeRoom(p.resource))
	p.items = append(p.items, cut{object, object.TypeMeta})
	return nil
}

// typeRoom is how many bytes the type of an item may need in its text.
func typeRoom(r Resource) int {
	return len(`,"apiVersion":"/","kind":""`) + len(r.Group) + len(r.Version) + len(r.Kind) + 8
}

// complete adds what the item lacks of its type. It is added at the end, where it
// wins over a member of the same name that is empty.
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

// kind is the resource's kind by discovery, else the list's without "List".
func (p *page) kind() string {
	if p.resource.Kind != "" {
		return p.resource.Kind
	}
	return strings.TrimSuffix(p.list.Kind, "List")
}

// describe is, for example, "v1 Status".
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
