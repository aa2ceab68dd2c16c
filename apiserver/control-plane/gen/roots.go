package main

import (
	"reflect"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	storagemigration "k8s.io/api/storagemigration/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// roots returns the kinds that a kube-apiserver with default flags serves, in the order of the table.
func roots() []reflect.Type {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme,
		authorization.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme,
		batch.AddToScheme, certificates.AddToScheme, coordination.AddToScheme, core.AddToScheme,
		discovery.AddToScheme, events.AddToScheme, flowcontrol.AddToScheme, networking.AddToScheme,
		node.AddToScheme, policy.AddToScheme, rbac.AddToScheme, resource.AddToScheme,
		scheduling.AddToScheme, storage.AddToScheme, apiextensions.AddToScheme,
		apiregistration.AddToScheme, storagemigration.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			fail(err.Error())
		}
	}
	byName := map[string]reflect.Type{}
	for _, kind := range scheme.AllKnownTypes() {
		byName[typeName(kind)] = kind
	}
	for _, kind := range []any{
		v1.Status{}, v1.Table{}, v1.PartialObjectMetadata{}, v1.PartialObjectMetadataList{},
		v1.APIVersions{}, v1.APIGroupList{}, v1.APIResourceList{}, v1.WatchEvent{},
		v1.DeleteOptions{}, v1.Condition{}, apidiscovery.APIGroupDiscoveryList{},
	} {
		byName[typeName(reflect.TypeOf(kind))] = reflect.TypeOf(kind)
	}
	var list []reflect.Type
	for _, name := range sortedKeys(byName) {
		if _, described := definitions[name]; described {
			list = append(list, byName[name])
		}
	}
	return list
}
