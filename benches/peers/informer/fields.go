package main

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mergeKeys names the lists whose items have a key, and the key. All other lists belong to one manager as
// a whole.
var mergeKeys = map[string][]string{
	"containers": {"name"}, "env": {"name"}, "volumes": {"name"}, "volumeMounts": {"mountPath"},
	"ports": {"containerPort", "protocol"}, "conditions": {"type"}, "podIPs": {"ip"}, "hostIPs": {"ip"},
	"ownerReferences": {"uid"}, "topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
}

// addManagedFields says who set which field, as the API server would: the ReplicaSet controller made the
// pod, the kubelet set its status.
func addManagedFields(pod *corev1.Pod) error {
	text, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return err
	}
	metadata := map[string]any{}
	for name, value := range tree["metadata"].(map[string]any) {
		switch name {
		case "annotations", "generateName", "labels", "ownerReferences":
			metadata[name] = value
		}
	}
	spec := tree["spec"].(map[string]any)
	for _, name := range []string{"nodeName", "priority", "tolerations", "preemptionPolicy", "serviceAccount"} {
		delete(spec, name)
	}
	made := owned("", map[string]any{"metadata": metadata, "spec": spec})
	status := owned("", map[string]any{"status": tree["status"]})
	for _, part := range []struct {
		manager, subresource string
		fields               any
	}{{"kube-controller-manager", "", made}, {"kubelet", "status", status}} {
		raw, err := json.Marshal(part.fields)
		if err != nil {
			return err
		}
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: part.manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			Time: &born, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: raw},
			Subresource: part.subresource,
		})
	}
	return nil
}

// owned is the set of fields that this value has, in the form of FieldsV1. name is the field's own.
func owned(name string, value any) map[string]any {
	out := map[string]any{}
	switch value := value.(type) {
	case map[string]any:
		if whole(name) {
			return out
		}
		if name != "" && name != "metadata" && name != "spec" && name != "status" {
			out["."] = map[string]any{}
		}
		for field, inner := range value {
			out["f:"+field] = owned(field, inner)
		}
	case []any:
		keys := mergeKeys[name]
		if keys == nil {
			return out
		}
		out["."] = map[string]any{}
		for _, item := range value {
			item := item.(map[string]any)
			if added(item) {
				continue
			}
			parts := make([]string, 0, len(keys))
			for _, key := range keys {
				text, _ := json.Marshal(item[key])
				parts = append(parts, `"`+key+`":`+string(text))
			}
			out["k:{"+strings.Join(parts, ",")+"}"] = owned("item", item)
		}
	}
	return out
}

// added says whether admission or the scheduler added this item of a list: no other manager owns such items.
func added(item map[string]any) bool {
	name, _ := item["name"].(string)
	return strings.HasPrefix(name, tokenVolume) || item["type"] == "PodScheduled"
}

// whole says whether a field belongs to one manager as a whole.
func whole(name string) bool {
	return name == "fieldRef" || name == "secretKeyRef" || name == "labelSelector"
}
