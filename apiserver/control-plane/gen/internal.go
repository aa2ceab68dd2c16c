package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	"k8s.io/kubernetes/pkg/apis/resource"
)

// internalTable describes the types that messages of the server show: its own version of an object,
// whose members have the names of Go. The format is described in schema/src/internal.rs.
type internalTable struct {
	seen map[string]bool
	text strings.Builder
}

// shownField is a field as Go encodes it, and the member of the published version that it is made of.
type shownField struct {
	name, from string
	omitted    bool
	internal   reflect.Type
	published  reflect.Type
}

func internalTypes() string {
	table := &internalTable{seen: map[string]bool{}}
	table.text.WriteString("# Written by apiserver/control-plane/gen; `just generate` writes it again.\n")
	for _, pair := range [][2]any{
		{core.PodSpec{}, corev1.PodSpec{}},
		{core.PodTemplateSpec{}, corev1.PodTemplateSpec{}},
		{core.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimSpec{}},
		{core.PersistentVolumeSource{}, corev1.PersistentVolumeSource{}},
		{resource.ResourceClaimTemplateSpec{}, resourcev1.ResourceClaimTemplateSpec{}},
		{batch.PodFailurePolicy{}, batchv1.PodFailurePolicy{}},
		{core.ObjectReference{}, corev1.ObjectReference{}},
		{core.EventSource{}, corev1.EventSource{}},
		{core.VolumeNodeAffinity{}, corev1.VolumeNodeAffinity{}},
		{flowcontrol.FlowSchemaSpec{}, flowcontrolv1.FlowSchemaSpec{}},
		{
			flowcontrol.PriorityLevelConfigurationSpec{},
			flowcontrolv1.PriorityLevelConfigurationSpec{},
		},
	} {
		table.visit(reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1]))
	}
	return table.text.String()
}

func (table *internalTable) visit(internal, published reflect.Type) {
	name := internal.String()
	if table.seen[name] {
		return
	}
	table.seen[name] = true
	fields := shownFields(internal, published)
	fmt.Fprintf(&table.text, "%s\n", name)
	for _, field := range fields {
		mark := ""
		if field.omitted {
			mark = "?"
		}
		fmt.Fprintf(&table.text, " %s%s %s %s\n", field.name, mark, field.from, shape(field.internal))
	}
	for _, field := range fields {
		inner, outer := field.internal, field.published
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			if encodesItself(inner) {
				break
			}
			inner, outer = inner.Elem(), outer.Elem()
		}
		if inner.Kind() == reflect.Struct && !encodesItself(inner) {
			table.visit(inner, outer)
		}
	}
}

// shape names a type: `*` is a pointer, `[]` a list, `{}` a map, `any` what both versions encode alike.
func shape(t reflect.Type) string {
	switch {
	case encodesItself(t):
		return "any"
	case t.Kind() == reflect.Pointer:
		return "*" + shape(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return "[]" + shape(t.Elem())
	case t.Kind() == reflect.Map:
		return "{}" + shape(t.Elem())
	case t.Kind() == reflect.Struct:
		return t.String()
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.Int32 || t.Kind() == reflect.Int64:
		return "int"
	}
	fail("no shape of " + t.String())
	return ""
}

func encodesItself(t reflect.Type) bool {
	for _, marshaler := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler](),
	} {
		if t.Implements(marshaler) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(marshaler) {
			return true
		}
	}
	return false
}

// renamed maps the fields that are made of a published member of another name.
var renamed = map[string]string{
	"core.AzureDiskVolumeSource.DataDiskURI":             "diskURI",
	"core.GlusterfsPersistentVolumeSource.EndpointsName": "endpoints",
	"core.GlusterfsVolumeSource.EndpointsName":           "endpoints",
	"core.ISCSIPersistentVolumeSource.DiscoveryCHAPAuth": "chapAuthDiscovery",
	"core.ISCSIPersistentVolumeSource.SessionCHAPAuth":   "chapAuthSession",
	"core.ISCSIVolumeSource.DiscoveryCHAPAuth":           "chapAuthDiscovery",
	"core.ISCSIVolumeSource.SessionCHAPAuth":             "chapAuthSession",
	"core.PodSpec.DeprecatedServiceAccount":              "serviceAccountName",
	"core.RBDPersistentVolumeSource.CephMonitors":        "monitors",
	"core.RBDPersistentVolumeSource.RBDImage":            "image",
	"core.RBDPersistentVolumeSource.RBDPool":             "pool",
	"core.RBDPersistentVolumeSource.RadosUser":           "user",
	"core.RBDVolumeSource.CephMonitors":                  "monitors",
	"core.RBDVolumeSource.RBDImage":                      "image",
	"core.RBDVolumeSource.RBDPool":                       "pool",
	"core.RBDVolumeSource.RadosUser":                     "user",
}

func shownFields(internal, published reflect.Type) []shownField {
	known := map[string]reflect.StructField{}
	publishedFields(published, known)
	var found []shownField
	for field := range fieldsOf(internal) {
		if field.Anonymous {
			// The metadata of a template is embedded in the internal version alone.
			if own, ok := known["metadata"]; ok && field.Name == "ObjectMeta" {
				for _, inner := range shownFields(field.Type, own.Type) {
					inner.from = "metadata." + inner.from
					found = append(found, inner)
				}
				continue
			}
			found = append(found, shownFields(field.Type, published)...)
			continue
		}
		tag := strings.Split(field.Tag.Get("json"), ",")
		one := shownField{name: field.Name, internal: field.Type, published: field.Type}
		if tag[0] != "" {
			one.name = tag[0]
		}
		one.omitted = strings.Contains(field.Tag.Get("json"), ",omit")
		from, isRenamed := renamed[internal.String()+"."+field.Name]
		if !isRenamed {
			from = one.name
		}
		if own, ok := known[strings.ToLower(from)]; ok {
			one.from = strings.Split(own.Tag.Get("json"), ",")[0]
			one.published = own.Type
		} else {
			fail(fmt.Sprintf("no member for %v.%s", internal, field.Name))
		}
		found = append(found, one)
	}
	return found
}

func publishedFields(t reflect.Type, into map[string]reflect.StructField) {
	for field := range fieldsOf(t) {
		name := strings.Split(field.Tag.Get("json"), ",")[0]
		if field.Anonymous && name == "" {
			publishedFields(field.Type, into)
			continue
		}
		into[strings.ToLower(name)] = field
	}
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for at := range t.NumField() {
			if !yield(t.Field(at)) {
				return
			}
		}
	}
}
