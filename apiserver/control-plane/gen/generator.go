package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// definitions maps names such as io.k8s.api.core.v1.Pod to the published schemas.
var definitions = publishedDefinitions()

// scalars maps the types that have an encoding of their own to their names in the table.
var scalars = map[string]string{
	"io.k8s.apimachinery.pkg.apis.meta.v1.Time":                                             "Time",
	"io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime":                                        "MicroTime",
	"io.k8s.apimachinery.pkg.apis.meta.v1.Duration":                                         "Duration",
	"io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1":                                         "any",
	"io.k8s.apimachinery.pkg.api.resource.Quantity":                                         "Quantity",
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString":                                       "IntOrString",
	"io.k8s.apimachinery.pkg.runtime.RawExtension":                                          "any",
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON":                         "any",
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray":       "any",
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool":        "any",
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "any",
}

type generator struct {
	// seen maps the names of visited types to the types.
	seen map[string]reflect.Type
	// names has the names of the types that the table describes.
	names []string
}

// member is a field of a type, with its place in the published schema.
type member struct {
	name  string
	field reflect.StructField
	tag   []string
	owner string
	// around has the protobuf numbers of the embedded messages that have the member, such as "2.".
	around   string
	encoded  bool
	schema   spec.Schema
	required bool
}

func newGenerator() *generator {
	return &generator{seen: map[string]reflect.Type{}}
}

func publishedDefinitions() map[string]common.OpenAPIDefinition {
	reference := func(path string) spec.Ref { return spec.MustCreateRef(openAPIName(path)) }
	found := map[string]common.OpenAPIDefinition{}
	for path, definition := range openapi.GetOpenAPIDefinitions(reference) {
		found[openAPIName(path)] = definition
	}
	return found
}

// openAPIName turns k8s.io/api/core/v1.Pod into io.k8s.api.core.v1.Pod.
func openAPIName(path string) string {
	host, rest, found := strings.Cut(path, "/")
	if !found {
		return path
	}
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".")
}

func typeName(t reflect.Type) string {
	return openAPIName(t.PkgPath() + "." + t.Name())
}

// visit adds a type and the types that its members refer to.
func (g *generator) visit(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		g.visit(t.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	name := typeName(t)
	if _, special := scalars[name]; special || g.seen[name] != nil {
		return
	}
	g.seen[name] = t
	g.names = append(g.names, name)
	for _, m := range g.members(t) {
		g.visit(m.field.Type)
	}
}

// members returns the members of a type, those of embedded types included.
func (g *generator) members(t reflect.Type) []member {
	definition := definitions[typeName(t)].Schema
	var list []member
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		if tag[0] == "" && (field.Anonymous || slices.Contains(tag, "inline")) {
			list = append(list, g.embedded(field)...)
			continue
		}
		if tag[0] == "" || tag[0] == "-" {
			continue
		}
		list = append(list, member{
			name: tag[0], field: field, tag: tag[1:], owner: typeName(t), encoded: true,
		})
	}
	for i := range list {
		if schema, found := definition.Properties[list[i].name]; found {
			list[i].schema = schema
			list[i].required = slices.Contains(definition.Required, list[i].name)
		}
	}
	return list
}

// embedded returns the members of an embedded type. In protobuf it is a message of its own, or, as
// TypeMeta, absent.
func (g *generator) embedded(field reflect.StructField) []member {
	list := g.members(elem(field.Type))
	number := protobufNumber(field)
	for i := range list {
		switch {
		case number == "":
			list[i].encoded = false
		default:
			list[i].around = number + "." + list[i].around
		}
	}
	return list
}

// table returns the text of the table.
func (g *generator) table() string {
	var out strings.Builder
	out.WriteString("# Written by apiserver/control-plane/gen; `just generate` writes it again.\n")
	pkg := ""
	slices.Sort(g.names)
	for _, name := range g.names {
		t := g.seen[name]
		at := strings.LastIndex(name, ".")
		if name[:at] != pkg {
			pkg = name[:at]
			fmt.Fprintf(&out, "[%s]\n", pkg)
		}
		out.WriteString(name[at+1:])
		if definitions[name].Schema.Extensions["x-kubernetes-map-type"] == "atomic" {
			out.WriteString(" @atomic")
		}
		out.WriteString("\n")
		for _, m := range g.members(t) {
			out.WriteString(" " + g.line(m) + "\n")
		}
	}
	return out.String()
}

// line returns the line of a member.
func (g *generator) line(m member) string {
	name := m.name
	switch {
	case slices.Contains(m.tag, "omitzero"):
		name += "?~"
	case slices.Contains(m.tag, "omitempty"):
		name += "?"
	}
	words := []string{name, g.expression(m.field.Type)}
	if text := goType(m.field.Type); text != derivedGoType(m.field.Type) {
		words = append(words, ":"+text)
	}
	if number := protobufNumber(m.field); number != "" && m.encoded {
		words = append(words, m.around+number)
	}
	if m.required {
		words = append(words, "!")
	}
	words = append(words, relation(m.schema)...)
	words = append(words, patch(m.field)...)
	if dropped[m.owner+"."+m.name] {
		words = append(words, "-")
	}
	if values := enum(m.schema); values != "" {
		words = append(words, values)
	}
	if m.schema.Default != nil {
		words = append(words, "="+encoded(m.schema.Default))
	}
	return strings.Join(words, " ")
}

// expression returns the type's text in the table.
func (g *generator) expression(t reflect.Type) string {
	if name, special := scalars[typeName(t)]; special {
		return name
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + g.expression(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + g.expression(t.Elem())
	case reflect.Map:
		return "{}" + g.expression(t.Elem())
	case reflect.Struct:
		return typeName(t)
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64:
		return t.Kind().String()
	case reflect.Int:
		return "int64"
	case reflect.Interface:
		return "any"
	}
	fail(fmt.Sprintf("the table has no name for %s of kind %s", t, t.Kind()))
	return ""
}

// goType returns the type's name in messages of the decoder, which names no pointers.
func goType(t reflect.Type) string {
	return strings.ReplaceAll(strings.TrimLeft(t.String(), "*"), "interface {}", "any")
}

// derivedGoType returns the name that the reader of the table derives.
func derivedGoType(t reflect.Type) string {
	if scalars[typeName(t)] == "any" {
		return ""
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return derivedGoType(t.Elem())
	case t.Kind() == reflect.Struct:
		return t.String()
	case t.Kind() == reflect.Slice:
		return "[]" + derivedItem(t.Elem())
	case t.Kind() == reflect.Map:
		return "map[string]" + derivedItem(t.Elem())
	case t.Kind() == reflect.Int || t.Kind() == reflect.Interface:
		return ""
	}
	return t.Kind().String()
}

func derivedItem(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		return "*" + derivedGoType(t.Elem())
	}
	return derivedGoType(t)
}

// protobufNumber returns the number of a field. A list with a message of its own, such as Verbs, has
// its items there, as number 1.
func protobufNumber(field reflect.StructField) string {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return ""
	}
	message := reflect.TypeFor[interface{ Marshal() ([]byte, error) }]()
	if field.Type.Kind() == reflect.Slice && field.Type.Implements(message) {
		return parts[1] + ".1"
	}
	return parts[1]
}

// relation returns the list type with its keys, or the type of a map.
func relation(schema spec.Schema) []string {
	if schema.Extensions["x-kubernetes-map-type"] == "atomic" {
		return []string{"@atomic"}
	}
	// A map is granular by default; a reference says so only if its type is atomic.
	if schema.Extensions["x-kubernetes-map-type"] == "granular" && len(schema.Type) == 0 {
		return []string{"@granular"}
	}
	switch schema.Extensions["x-kubernetes-list-type"] {
	case "set":
		return []string{"@set"}
	case "map":
		keys := keyNames(schema.Extensions["x-kubernetes-list-map-keys"])
		return []string{"@" + strings.Join(keys, ",")}
	}
	return nil
}

func keyNames(value any) []string {
	var names []string
	list, _ := value.([]any)
	for _, item := range list {
		names = append(names, item.(string))
	}
	return names
}

// patch returns the strategy and the key of a strategic merge patch.
func patch(field reflect.StructField) []string {
	strategies := strings.Split(field.Tag.Get("patchStrategy"), ",")
	var words []string
	if slices.Contains(strategies, "merge") {
		words = append(words, "^"+field.Tag.Get("patchMergeKey"))
	}
	if slices.Contains(strategies, "retainKeys") {
		words = append(words, "^^")
	}
	if slices.Contains(strategies, "replace") {
		words = append(words, "^=")
	}
	return words
}

// enum returns the allowed texts of a member, or of the items of a list.
func enum(schema spec.Schema) string {
	values := schema.Enum
	if len(values) == 0 && schema.Items != nil && schema.Items.Schema != nil {
		values = schema.Items.Schema.Enum
	}
	var out strings.Builder
	for _, value := range values {
		out.WriteString("|" + strings.ReplaceAll(fmt.Sprint(value), " ", "~"))
	}
	return out.String()
}

func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		fail(err.Error())
	}
	return string(text)
}

// descriptions returns the texts of kubectl explain: a type or a member, a tab, the text as JSON.
func (g *generator) descriptions() string {
	var out strings.Builder
	out.WriteString("# Written by apiserver/control-plane/gen; `just generate` writes it again.\n")
	for _, name := range g.names {
		definition := definitions[name].Schema
		fmt.Fprintf(&out, "%s\t%s\n", name, encoded(definition.Description))
		for _, m := range g.members(g.seen[name]) {
			if m.schema.Description != "" {
				fmt.Fprintf(&out, " %s\t%s\n", m.name, encoded(m.schema.Description))
			}
		}
	}
	// Types that are no objects of the table, but have a schema of their own.
	for _, name := range append(sortedKeys(scalars), "io.k8s.apimachinery.pkg.apis.meta.v1.Patch") {
		if text := definitions[name].Schema.Description; text != "" {
			fmt.Fprintf(&out, "%s\t%s\n", name, encoded(text))
		}
	}
	return out.String()
}
