package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// protobufVectors returns bodies as apimachinery encodes them: the bytes in base64, a tab, the JSON.
func protobufVectors() string {
	var out strings.Builder
	out.WriteString("# Written by apiserver/control-plane/gen; `just generate` writes it again.\n")
	serializer := protobuf.NewSerializer(runtime.NewScheme(), runtime.NewScheme())
	for _, object := range vectorObjects() {
		var body bytes.Buffer
		if err := serializer.Encode(object, &body); err != nil {
			fail(err.Error())
		}
		text, err := json.Marshal(object)
		if err != nil {
			fail(err.Error())
		}
		fmt.Fprintf(&out, "%s\t%s\n", base64.StdEncoding.EncodeToString(body.Bytes()), text)
	}
	return out.String()
}

func pointer[T any](value T) *T { return &value }

func vectorObjects() []runtime.Object {
	at := v1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	meta := v1.ObjectMeta{
		Name: "a", Namespace: "default", UID: "u", ResourceVersion: "7", Generation: -1,
		CreationTimestamp: at, DeletionGracePeriodSeconds: pointer(int64(0)),
		Labels: map[string]string{"x": "1", "empty": ""}, Finalizers: []string{"f/g"},
		OwnerReferences: []v1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: "p", UID: "v", Controller: pointer(true),
		}},
		ManagedFields: []v1.ManagedFieldsEntry{{
			Manager: "m", Operation: "Update", Time: &at, FieldsType: "FieldsV1",
			FieldsV1: &v1.FieldsV1{Raw: []byte(`{"f:data":{"f:k":{}}}`)},
		}},
	}
	kind := func(apiVersion, kind string) v1.TypeMeta {
		return v1.TypeMeta{APIVersion: apiVersion, Kind: kind}
	}
	container := core.Container{
		Name: "c", Image: "i", Args: []string{"", "b"},
		Ports: []core.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}},
		Resources: core.ResourceRequirements{Requests: core.ResourceList{
			"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi"),
		}},
		LivenessProbe: &core.Probe{
			ProbeHandler: core.ProbeHandler{HTTPGet: &core.HTTPGetAction{
				Path: "/", Port: intstr.FromString("http"),
			}},
			PeriodSeconds: 10,
		},
	}
	spec := core.PodSpec{
		Containers: []core.Container{container}, RestartPolicy: "Always", HostNetwork: true,
		Volumes: []core.Volume{
			{Name: "v", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
			{Name: "w", VolumeSource: core.VolumeSource{ConfigMap: &core.ConfigMapVolumeSource{
				LocalObjectReference: core.LocalObjectReference{Name: "cm"},
				DefaultMode:          pointer(int32(420)),
			}}},
		},
		SecurityContext: &core.PodSecurityContext{RunAsUser: pointer(int64(-1))},
	}
	selector := &v1.LabelSelector{MatchLabels: map[string]string{"x": "1"}}
	return []runtime.Object{
		&core.ConfigMap{TypeMeta: kind("v1", "ConfigMap"), ObjectMeta: meta,
			Data: map[string]string{"k": "v", "e": ""}, BinaryData: map[string][]byte{"b": {0, 255}}},
		&core.Secret{TypeMeta: kind("v1", "Secret"), Type: "Opaque", Immutable: pointer(false),
			Data: map[string][]byte{"k": []byte("v")}},
		&core.Namespace{TypeMeta: kind("v1", "Namespace"), ObjectMeta: v1.ObjectMeta{Name: "n"}},
		&core.Pod{TypeMeta: kind("v1", "Pod"), ObjectMeta: meta, Spec: spec, Status: core.PodStatus{
			Phase: "Running", StartTime: &at,
			Conditions: []core.PodCondition{{Type: "Ready", Status: "True", LastTransitionTime: at}},
		}},
		&core.Service{TypeMeta: kind("v1", "Service"), Spec: core.ServiceSpec{
			Ports: []core.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080), NodePort: 30000}},
		}},
		&core.Event{TypeMeta: kind("v1", "Event"), Count: 2, FirstTimestamp: at,
			EventTime: v1.NewMicroTime(at.Add(123456 * time.Microsecond))},
		&apps.Deployment{TypeMeta: kind("apps/v1", "Deployment"), ObjectMeta: meta,
			Spec: apps.DeploymentSpec{Replicas: pointer(int32(0)), Selector: selector,
				Template: core.PodTemplateSpec{Spec: spec},
				Strategy: apps.DeploymentStrategy{RollingUpdate: &apps.RollingUpdateDeployment{
					MaxSurge: pointer(intstr.FromString("25%")),
				}}}},
		&coordination.Lease{TypeMeta: kind("coordination.k8s.io/v1", "Lease"),
			Spec: coordination.LeaseSpec{HolderIdentity: pointer(""),
				RenewTime: pointer(v1.NewMicroTime(at.Time))}},
		&policy.PodDisruptionBudget{TypeMeta: kind("policy/v1", "PodDisruptionBudget"),
			Status: policy.PodDisruptionBudgetStatus{DisruptedPods: map[string]v1.Time{"p": at}}},
		&resourcev1.DeviceClass{TypeMeta: kind("resource.k8s.io/v1", "DeviceClass"),
			Spec: resourcev1.DeviceClassSpec{Config: []resourcev1.DeviceClassConfiguration{{
				DeviceConfiguration: resourcev1.DeviceConfiguration{
					Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "d",
						Parameters: runtime.RawExtension{Raw: []byte(`{"a":[1,null]}`)}},
				},
			}}}},
		&authentication.TokenReview{TypeMeta: kind("authentication.k8s.io/v1", "TokenReview"),
			Status: authentication.TokenReviewStatus{User: authentication.UserInfo{
				Extra: map[string]authentication.ExtraValue{"k": {"a", ""}},
			}}},
		&v1.APIResourceList{TypeMeta: kind("v1", "APIResourceList"), GroupVersion: "apps/v1",
			APIResources: []v1.APIResource{{
				Name: "deployments", SingularName: "deployment", Namespaced: true,
				Kind: "Deployment", Verbs: []string{"get", "list"},
				ShortNames: []string{"deploy"}, StorageVersionHash: "8aSe+NMegvE=",
			}}},
	}
}
