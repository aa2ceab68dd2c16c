// Command vectors records the answers of apimachinery's FieldManager and of structured-merge-diff, for
// the unit tests of the crate.
//
// Run in this folder: go run . > vectors.txt
//
// Each line is a JSON object. "do" names what was done:
//
//	set      the fields of "value"
//	compare  the difference between "old" and "new"
//	merge    "config" merged into "live"
//	remove   "value" without the fields in "set"
//	story    a sequence of applies and updates of one object, each with the object or the error that it led to
//
// The type of all values is "thing" in schema.yaml, which src/test_schema.rs declares in Rust.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

//go:embed schema.yaml
var schemaText string

var (
	random = rand.New(rand.NewSource(20261122))
	out    = bufio.NewWriter(os.Stdout)
	thing  typed.ParseableType
	gvk    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
)

func main() {
	defer out.Flush()
	parser, err := typed.NewParser(typed.YAMLObject(schemaText))
	if err != nil {
		panic(err)
	}
	thing = parser.Type("thing")
	for range 120 {
		value := spec()
		emit(map[string]any{"do": "set", "value": value, "answer": set(value)})
	}
	for range 200 {
		old, new := spec(), spec()
		emit(map[string]any{"do": "compare", "old": old, "new": new, "answer": compare(old, new)})
	}
	for range 200 {
		live, config := spec(), spec()
		emit(map[string]any{"do": "merge", "live": live, "config": config, "answer": merge(live, config)})
	}
	for range 120 {
		value, other := spec(), spec()
		emit(remove(value, other))
	}
	for range 90 {
		emit(map[string]any{"do": "story", "steps": story(2 + random.Intn(7))})
	}
	// Long enough for more managers than an object keeps.
	for range 4 {
		emit(map[string]any{"do": "story", "steps": story(40)})
	}
}

func emit(line map[string]any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	out.Write(text)
	out.WriteByte('\n')
}

// --- values ---

func chance(percent int) bool { return random.Intn(100) < percent }

func pick[T any](from ...T) T { return from[random.Intn(len(from))] }

func word() string { return pick("a", "b", "c", "d") }

// wrong is a value that seldom fits the type of its field.
func wrong() any {
	return pick[any](nil, "text", int64(7), true, 1.5, []any{}, map[string]any{}, []any{"a"}, map[string]any{"a": int64(1)})
}

func maybe(into map[string]any, name string, percent int, make func() any) {
	if !chance(percent) {
		return
	}
	if chance(1) {
		into[name] = wrong()
		return
	}
	into[name] = make()
}

func list(most int, make func() any) any {
	items := []any{}
	for range random.Intn(most + 1) {
		items = append(items, make())
	}
	return items
}

func words() any {
	entries := map[string]any{}
	for range random.Intn(3) {
		entries[word()] = word()
	}
	return entries
}

func part() any {
	fields := map[string]any{}
	maybe(fields, "name", 99, func() any { return word() })
	maybe(fields, "value", 60, func() any { return int64(random.Intn(3)) })
	maybe(fields, "tags", 30, func() any { return list(3, func() any { return word() }) })
	maybe(fields, "options", 30, words)
	return fields
}

func port() any {
	fields := map[string]any{}
	maybe(fields, "port", 98, func() any { return int64(80 + random.Intn(2)) })
	maybe(fields, "protocol", 50, func() any { return pick("TCP", "UDP") })
	maybe(fields, "note", 50, func() any { return word() })
	return fields
}

func pair() any {
	fields := map[string]any{}
	maybe(fields, "left", 70, func() any { return word() })
	maybe(fields, "right", 70, func() any { return word() })
	return fields
}

func anything(depth int) any {
	if depth == 0 || chance(50) {
		return pick[any](int64(1), "a", true, 0.5)
	}
	if chance(40) {
		return list(2, func() any { return anything(depth - 1) })
	}
	fields := map[string]any{}
	for range random.Intn(3) {
		fields[word()] = anything(depth - 1)
	}
	return fields
}

// unique keeps the first of the items that look the same, so that most lists are valid.
func unique(items any, key func(any) string) any {
	all, ok := items.([]any)
	if !ok || chance(10) {
		return items
	}
	seen, kept := map[string]bool{}, []any{}
	for _, item := range all {
		if !seen[key(item)] {
			seen[key(item)] = true
			kept = append(kept, item)
		}
	}
	return kept
}

func field(names ...string) func(any) string {
	return func(item any) string {
		text := ""
		if fields, ok := item.(map[string]any); ok {
			for _, name := range names {
				text += fmt.Sprintf("%v/", fields[name])
			}
		}
		return text
	}
}

func spec() map[string]any {
	fields := map[string]any{}
	maybe(fields, "count", 40, func() any { return int64(random.Intn(3)) })
	maybe(fields, "text", 40, func() any { return word() })
	maybe(fields, "flag", 20, func() any { return chance(50) })
	maybe(fields, "percent", 20, func() any { return pick[any](int64(1), "50%") })
	maybe(fields, "labels", 40, words)
	maybe(fields, "sealed", 30, words)
	maybe(fields, "colors", 50, func() any {
		return unique(list(4, func() any { return word() }), func(item any) string { return fmt.Sprint(item) })
	})
	maybe(fields, "numbers", 20, func() any {
		return unique(list(3, func() any { return int64(random.Intn(4)) }), func(item any) string { return fmt.Sprint(item) })
	})
	maybe(fields, "lines", 30, func() any { return list(3, func() any { return word() }) })
	maybe(fields, "parts", 60, func() any { return unique(list(4, part), field("name")) })
	maybe(fields, "ports", 40, func() any { return unique(list(3, port), field("port", "protocol")) })
	maybe(fields, "pair", 30, pair)
	maybe(fields, "frozen", 30, pair)
	maybe(fields, "groups", 30, func() any {
		groups := map[string]any{}
		for range random.Intn(3) {
			groups[word()] = pair()
		}
		return groups
	})
	maybe(fields, "free", 30, func() any { return anything(3) })
	if chance(2) {
		fields["unknown"] = word()
	}
	return map[string]any{"spec": fields}
}

// --- single operations ---

func typedValue(value map[string]any) (*typed.TypedValue, error) {
	return thing.FromUnstructured(value, typed.AllowDuplicates)
}

func failed(err error) any { return map[string]any{"error": err.Error()} }

func fields(set *fieldpath.Set) any {
	text, err := set.ToJSON()
	if err != nil {
		panic(err)
	}
	return json.RawMessage(text)
}

func set(value map[string]any) any {
	of, err := typedValue(value)
	if err != nil {
		return failed(err)
	}
	answer, err := of.ToFieldSet()
	if err != nil {
		return failed(err)
	}
	return map[string]any{"set": fields(answer)}
}

func compare(old, new map[string]any) any {
	left, err := typedValue(old)
	if err != nil {
		return failed(err)
	}
	right, err := typedValue(new)
	if err != nil {
		return failed(err)
	}
	answer, err := left.Compare(right)
	if err != nil {
		return failed(err)
	}
	return map[string]any{
		"added": fields(answer.Added), "modified": fields(answer.Modified), "removed": fields(answer.Removed),
	}
}

func merge(live, config map[string]any) any {
	left, err := typedValue(live)
	if err != nil {
		return failed(err)
	}
	right, err := typedValue(config)
	if err != nil {
		return failed(err)
	}
	answer, err := left.Merge(right)
	if err != nil {
		return failed(err)
	}
	return map[string]any{"value": answer.AsValue().Unstructured()}
}

func remove(value, other map[string]any) map[string]any {
	line := map[string]any{"do": "remove", "value": value}
	left, err := typedValue(value)
	if err != nil {
		line["answer"], line["set"] = failed(err), map[string]any{}
		return line
	}
	gone := fieldpath.NewSet()
	if right, err := typedValue(other); err == nil {
		gone, _ = right.ToFieldSet()
		gone = gone.EnsureNamedFieldsAreMembers(right.Schema(), right.TypeRef())
		gone = gone.Difference(fieldpath.NewSet(fieldpath.MakePathOrDie("spec")))
	}
	line["set"] = fields(gone)
	line["answer"] = map[string]any{"value": left.RemoveItems(gone).AsValue().Unstructured()}
	return line
}

// --- stories ---

type converter struct{}

func (converter) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return thing.FromUnstructured(object.(*unstructured.Unstructured).UnstructuredContent(), options...)
}

func (converter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return &unstructured.Unstructured{Object: value.AsValue().Unstructured().(map[string]any)}, nil
}

type same struct{}

func (same) Convert(in, out, context any) error { return errors.New("not used") }
func (same) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (same) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.New("not used")
}
func (same) Default(runtime.Object) {}
func (same) New(schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(gvk)
	return object, nil
}

func fieldManager(subresource string) *managedfields.FieldManager {
	var reset map[fieldpath.APIVersion]fieldpath.Filter
	if subresource == "status" {
		reset = map[fieldpath.APIVersion]fieldpath.Filter{
			"example.com/v1": fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "text"))),
		}
	}
	manager, err := managedfields.NewDefaultFieldManager(converter{}, same{}, same{}, same{}, gvk, gvk.GroupVersion(), subresource, reset)
	if err != nil {
		panic(err)
	}
	return manager
}

func complete(value map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(value)}
	object.SetGroupVersionKind(gvk)
	object.SetName("one")
	if chance(20) {
		object.SetLabels(map[string]string{word(): word()})
	}
	if chance(20) {
		object.SetFinalizers([]string{"example.com/" + word()})
	}
	if chance(15) {
		last := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "one"}}}
		last.Object["spec"] = runtime.DeepCopyJSON(value)["spec"]
		last.SetGroupVersionKind(gvk)
		text, _ := last.MarshalJSON()
		object.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(text)})
	}
	return object
}

// story returns a story within one second, so that times do not order the entries.
func story(length int) []any {
	for {
		start := time.Now().Unix()
		steps := write(length)
		if time.Now().Unix() == start {
			return steps
		}
	}
}

func write(length int) []any {
	managers := map[string]*managedfields.FieldManager{"": fieldManager(""), "status": fieldManager("status")}
	empty, _ := same{}.New(gvk)
	live := empty.(*unstructured.Unstructured)
	steps := []any{}
	for range length {
		subresource := ""
		if chance(15) {
			subresource = "status"
		}
		name := pick("kubectl", "painter", "builder", "scaler", "janitor", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9")
		step := map[string]any{"manager": name, "subresource": subresource}
		var result runtime.Object
		var err error
		if chance(55) {
			force := chance(40)
			config := complete(spec())
			step["apply"], step["force"] = runtime.DeepCopyJSON(config.Object), force
			result, err = managers[subresource].Apply(live, config, name, force)
		} else {
			next := complete(spec())
			if chance(60) {
				next = live.DeepCopy()
				next.SetName("one")
				change := spec()["spec"].(map[string]any)
				content, _, _ := unstructured.NestedMap(next.Object, "spec")
				if content == nil {
					content = map[string]any{}
				}
				for name, value := range change {
					if chance(30) {
						content[name] = value
					}
				}
				next.Object["spec"] = content
			}
			next.SetManagedFields(nil)
			next.SetUID("u")
			step["update"] = runtime.DeepCopyJSON(next.Object)
			result, err = managers[subresource].Update(live, next, name)
		}
		if err != nil {
			step["error"] = err.Error()
			if status := (*apierrors.StatusError)(nil); errors.As(err, &status) && status.ErrStatus.Details != nil {
				step["causes"] = len(status.ErrStatus.Details.Causes)
			}
		} else {
			live = result.(*unstructured.Unstructured).DeepCopy()
			step["object"], step["managed"] = content(live)
		}
		steps = append(steps, step)
	}
	return steps
}

// content returns the object without managedFields, and those with each time replaced by "now".
func content(object *unstructured.Unstructured) (any, any) {
	entries := object.GetManagedFields()
	shown := []any{}
	for _, entry := range entries {
		if entry.Time != nil {
			entry.Time = &metav1.Time{}
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&entry)
		if err != nil {
			panic(err)
		}
		if entry.Time != nil {
			fields["time"] = "now"
		}
		shown = append(shown, fields)
	}
	plain := object.DeepCopy()
	unstructured.RemoveNestedField(plain.Object, "metadata", "managedFields")
	return plain.Object, shown
}
