// Command costs records the costs that Kubernetes estimates for rules of custom resources, for the unit tests of the
// crate.
//
// Run in this folder: go run . > costs.txt
//
// Each line is a JSON object with a rule of rules.txt and its largest cost, or the error of a rule that does not
// compile. The rules are those of an object with the schema in schema.json.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"os"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

//go:embed schema.json
var schemaText []byte

//go:embed rules.txt
var rulesText string

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	var stated v1.JSONSchemaProps
	check(json.Unmarshal(schemaText, &stated))
	var internal apiextensions.JSONSchemaProps
	check(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&stated, &internal, nil))
	structural, err := schema.NewStructural(&internal)
	check(err)
	for _, rule := range strings.Split(strings.TrimSpace(rulesText), "\n") {
		structural.XValidations = v1.ValidationRules{{Rule: rule}}
		kind := model.SchemaDeclType(structural, true)
		base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
		results, err := cel.Compile(structural, kind, celconfig.PerCallLimit, base, cel.NewExpressionsEnvLoader())
		check(err)
		line := map[string]any{"rule": rule, "cost": results[0].MaxCost}
		if results[0].Error != nil {
			line = map[string]any{"rule": rule, "error": results[0].Error.Detail}
		}
		check(encoder.Encode(line))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
