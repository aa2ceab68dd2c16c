// Command gen writes the table of the API's types that the crate homeostat-schema reads.
//
// By reflection over the Go types: JSON names, omitted values, keys of strategic merge patches,
// protobuf numbers and the names in messages of the decoder. From the published OpenAPI
// definitions: list types, keys, atomic maps, defaults, enums, required fields, descriptions.
// The list types are compared with the schema that client-go embeds for server-side apply.
//
// The format of the table is described in schema/src/table.rs.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
)

func main() {
	if len(os.Args) != 3 {
		fail("usage: gen FOLDER INTERNAL_GO")
	}
	generator := newGenerator()
	for _, root := range roots() {
		generator.visit(root)
	}
	if err := compareWithApplyConfigurations(os.Args[2], generator); err != nil {
		fail(err.Error())
	}
	write(filepath.Join(os.Args[1], "types.txt"), generator.table())
	write(filepath.Join(os.Args[1], "descriptions.txt"), generator.descriptions())
	write(filepath.Join(os.Args[1], "protobuf.txt"), protobufVectors())
	write(filepath.Join(os.Args[1], "internal.txt"), internalTypes())
}

func write(path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		fail(err.Error())
	}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, "gen: "+message)
	os.Exit(1)
}

func sortedKeys[V any](values map[string]V) []string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func elem(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
