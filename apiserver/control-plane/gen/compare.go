package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// applyType is a type of the schema that client-go embeds; only what is compared is read.
type applyType struct {
	Name string `json:"name"`
	Map  struct {
		ElementRelationship string `json:"elementRelationship"`
		Fields              []struct {
			Name string `json:"name"`
			Type struct {
				NamedType           string `json:"namedType"`
				ElementRelationship string `json:"elementRelationship"`
				List                *struct {
					ElementRelationship string   `json:"elementRelationship"`
					Keys                []string `json:"keys"`
				} `json:"list"`
			} `json:"type"`
			Default any `json:"default"`
		} `json:"fields"`
	} `json:"map"`
}

// compareWithApplyConfigurations reads the schema out of applyconfigurations/internal/internal.go
// and reports the first difference from the table.
func compareWithApplyConfigurations(path string, g *generator) error {
	text, err := embeddedSchema(path)
	if err != nil {
		return err
	}
	var schema struct {
		Types []applyType `json:"types"`
	}
	if err := yaml.Unmarshal([]byte(text), &schema); err != nil {
		return err
	}
	compared := 0
	for _, published := range schema.Types {
		t, found := g.seen[published.Name]
		if !found {
			continue
		}
		compared++
		atomic := definitions[published.Name].Schema.Extensions["x-kubernetes-map-type"] == "atomic"
		if atomic != (published.Map.ElementRelationship == "atomic") {
			return fmt.Errorf("%s: the definitions disagree about atomic", published.Name)
		}
		members := g.members(t)
		for _, field := range published.Map.Fields {
			at := slices.IndexFunc(members, func(m member) bool { return m.name == field.Name })
			if at < 0 {
				return fmt.Errorf("%s.%s: not in the Go type", published.Name, field.Name)
			}
			if field.Type.List != nil {
				want := "@" + strings.Join(field.Type.List.Keys, ",")
				if len(field.Type.List.Keys) == 0 {
					want = "@set"
				}
				if field.Type.List.ElementRelationship == "atomic" {
					want = ""
				}
				if got := strings.Join(relation(members[at].schema), ""); got != want {
					return fmt.Errorf("%s.%s: %q, client-go has %q", published.Name, field.Name, got, want)
				}
			}
			if field.Type.NamedType != "" && field.Type.ElementRelationship == "separable" {
				if got := strings.Join(relation(members[at].schema), ""); got != "@granular" {
					return fmt.Errorf("%s.%s: %q, client-go has parts", published.Name, field.Name, got)
				}
			}
			want, got := encoded(field.Default), encoded(members[at].schema.Default)
			if want != got {
				return fmt.Errorf("%s.%s: default %s, client-go has %s", published.Name, field.Name, got, want)
			}
		}
	}
	if compared < 400 {
		return fmt.Errorf("only %d types were compared with client-go", compared)
	}
	return nil
}

// embeddedSchema returns the value of the constant schemaYAML.
func embeddedSchema(path string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return "", err
	}
	text := ""
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if ok && literal.Kind == token.STRING && len(literal.Value) > len(text) {
			text = literal.Value
		}
		return true
	})
	return strconv.Unquote(text)
}
