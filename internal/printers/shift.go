package printers

import (
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	timeType      = reflect.TypeFor[metav1.Time]()
	microTimeType = reflect.TypeFor[metav1.MicroTime]()
)

// shiftTimes shifts every time in an object, in place. A zero time means that there is no time, and stays zero.
func shiftTimes(object any, by time.Duration) { shiftValue(reflect.ValueOf(object), by) }

func shiftValue(v reflect.Value, by time.Duration) {
	if !v.IsValid() || !holdsTimes(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			shiftValue(v.Elem(), by)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			shiftValue(v.Index(i), by)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			// reflect cannot set the values of maps in place.
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			shiftValue(value, by)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		shiftStruct(v, by)
	default: // holds no times
	}
}

func shiftStruct(v reflect.Value, by time.Duration) {
	if !v.CanSet() {
		return
	}
	switch t := v.Addr().Interface().(type) {
	case *metav1.Time:
		if !t.IsZero() {
			t.Time = t.Add(by)
		}
		return
	case *metav1.MicroTime:
		if !t.IsZero() {
			t.Time = t.Add(by)
		}
		return
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			shiftValue(v.Field(i), by)
		}
	}
}

// timed caches which types can hold a time: shiftValue skips the other types, which are most parts of an object.
var timed sync.Map // reflect.Type → bool

func holdsTimes(t reflect.Type) bool {
	if known, ok := timed.Load(t); ok {
		return known.(bool)
	}
	holds := findTimes(t, map[reflect.Type]bool{})
	timed.Store(t, holds)
	return holds
}

// findTimes reports whether a type can hold a time. For a type that an outer call already visits, it returns false: the
// outer call finds any time in it.
func findTimes(t reflect.Type, within map[reflect.Type]bool) bool {
	if t == timeType || t == microTimeType || t.Kind() == reflect.Interface {
		return true
	}
	if within[t] {
		return false
	}
	within[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return findTimes(t.Elem(), within)
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() && findTimes(t.Field(i).Type, within) {
				return true
			}
		}
	default: // a value without parts
	}
	return false
}
