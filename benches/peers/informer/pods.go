package main

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// podsPerSet is how many pods each ReplicaSet has; setsPerNamespace how many ReplicaSets a namespace has.
const (
	podsPerSet       = 200
	setsPerNamespace = 10
	nodes            = 2000
	tokenVolume      = "kube-api-access-"
)

// sentAnnotation holds when the server sent this state of a pod: nanoseconds since 1970, in 19 digits.
const (
	sentAnnotation = "bench.homeostat.dev/sent"
	notSent        = "0000000000000000000"
)

// born is when everything was made: the same in every run.
var born = metav1.NewTime(time.Date(2026, 9, 1, 8, 30, 0, 0, time.UTC))

var apps = []string{"checkout", "catalogue", "payments", "search-indexer", "notifications", "sessions", "ledger", "recommendations"}

func namespaceOf(set int) string { return fmt.Sprintf("team-%03d", set/setsPerNamespace) }

func appOf(set int) string { return fmt.Sprintf("%s-%03d", apps[set%len(apps)], set) }

func hashOf(set int) string { return fmt.Sprintf("%08x9c", uint32(set+1)*2654435761)[:10] }

func uidOf(kind byte, number int) types.UID {
	mixed := uint64(number+1) * 0x9e3779b97f4a7c15
	return types.UID(fmt.Sprintf("%02x%06x-%04x-4%03x-8%03x-%012x", kind, number&0xffffff,
		mixed&0xffff, mixed>>16&0xfff, mixed>>28&0xfff, mixed>>16&0xffffffffffff))
}

// labelsOf are the labels of a ReplicaSet's pods.
func labelsOf(set int) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       appOf(set),
		"app.kubernetes.io/instance":   appOf(set) + "-production",
		"app.kubernetes.io/version":    fmt.Sprintf("2.%d.%d", set%17, set%7),
		"app.kubernetes.io/managed-by": "Helm",
		"pod-template-hash":            hashOf(set),
	}
}

// makeSet is a ReplicaSet that has all its pods, all of them available: nothing is left to do.
func makeSet(set, replicas int) *appsv1.ReplicaSet {
	count, none, template := int32(replicas), int32(0), makePod(set, 0)
	out := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: appOf(set) + "-" + hashOf(set), Namespace: namespaceOf(set), UID: uidOf('5', set),
			Labels: labelsOf(set), Generation: 1, CreationTimestamp: born,
			Annotations: map[string]string{
				"deployment.kubernetes.io/desired-replicas": fmt.Sprint(replicas),
				"deployment.kubernetes.io/max-replicas":     fmt.Sprint(replicas + replicas/4),
				"deployment.kubernetes.io/revision":         "3",
			},
			OwnerReferences: owner("Deployment", appOf(set), uidOf('d', set)),
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
				"app.kubernetes.io/name": appOf(set), "pod-template-hash": hashOf(set),
			}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(set)}, Spec: template.Spec,
			},
		},
		Status: appsv1.ReplicaSetStatus{
			Replicas: count, FullyLabeledReplicas: count, ReadyReplicas: count, AvailableReplicas: count, TerminatingReplicas: &none,
			ObservedGeneration: 1,
		},
	}
	out.Spec.Template.Spec.NodeName = ""
	return out
}

func owner(kind, name string, uid types.UID) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes,
	}}
}

// makePod is pod number ordinal of a ReplicaSet: running and ready, as a kubelet leaves it.
func makePod(set, ordinal int) *corev1.Pod {
	number := set*podsPerSet + ordinal
	node := number * 7 % nodes
	token := fmt.Sprintf(tokenVolume+"%05x", number&0xfffff)
	ip := fmt.Sprintf("10.%d.%d.%d", 64+node>>8, node&0xff, 2+number%250)
	host := fmt.Sprintf("10.0.%d.%d", node>>8, node&0xff)
	grace, seconds, priority := int64(30), int64(300), int32(1000)
	no, yes, preempt := false, true, corev1.PreemptLowerPriority
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:         fmt.Sprintf("%s-%s-%05x", appOf(set), hashOf(set), number&0xfffff),
			GenerateName: appOf(set) + "-" + hashOf(set) + "-",
			Namespace:    namespaceOf(set), UID: uidOf('a', number), Generation: 1, CreationTimestamp: born,
			Labels: labelsOf(set),
			Annotations: map[string]string{
				"kubectl.kubernetes.io/restartedAt": "2026-08-30T17:05:11Z",
				"prometheus.io/scrape":              "true",
				"prometheus.io/port":                "9102",
				"checksum/config":                   fmt.Sprintf("%064x", set*7919),
				sentAnnotation:                      notSent,
			},
			OwnerReferences: owner("ReplicaSet", appOf(set)+"-"+hashOf(set), uidOf('5', set)),
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
			TerminationGracePeriodSeconds: &grace, ServiceAccountName: apps[set%len(apps)],
			DeprecatedServiceAccount: apps[set%len(apps)],
			NodeName:                 fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", node>>8, node&0xff),
			SecurityContext:          &corev1.PodSecurityContext{RunAsNonRoot: &yes, FSGroup: &seconds},
			SchedulerName:            "default-scheduler", Priority: &priority, PriorityClassName: "production",
			EnableServiceLinks: &no, PreemptionPolicy: &preempt,
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": appOf(set)}},
			}},
			Volumes: volumes(set, token),
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, ObservedGeneration: 1, HostIP: host, PodIP: ip, StartTime: &born,
			HostIPs: []corev1.HostIP{{IP: host}}, PodIPs: []corev1.PodIP{{IP: ip}},
			QOSClass: corev1.PodQOSBurstable,
		},
	}
	for _, kind := range []corev1.PodConditionType{
		"PodReadyToStartContainers", corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: born, ObservedGeneration: 1,
		})
	}
	// 1, 2, 2, 2 or 3 containers.
	for i := range []int{1, 2, 2, 2, 3}[set%5] {
		spec := container(set, i, token)
		pod.Spec.Containers = append(pod.Spec.Containers, spec)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, containerStatus(spec, number))
	}
	return pod
}

func volumes(set int, token string) []corev1.Volume {
	mode, expires := int32(420), int64(3607)
	source := func(items ...corev1.VolumeProjection) corev1.VolumeSource {
		return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: items, DefaultMode: &mode}}
	}
	return []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: appOf(set) + "-config"}, DefaultMode: &mode,
		}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: token, VolumeSource: source(
			corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &expires, Path: "token"}},
			corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		)},
	}
}

var sidecars = []string{"", "proxy", "metrics", "log-shipper"}

func container(set, i int, token string) corev1.Container {
	name, port := sidecars[i], int32(9101+i)
	if i == 0 {
		name, port = apps[set%len(apps)], 8080
	}
	no := false
	env := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	from := func(name, path string) corev1.EnvVar {
		field := &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: field}}
	}
	probe := func(path string, period int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP,
			}},
			TimeoutSeconds: 1, PeriodSeconds: period, SuccessThreshold: 1, FailureThreshold: 3,
		}
	}
	out := corev1.Container{
		Name:  name,
		Image: fmt.Sprintf("registry.example.com/%s/%s:2.%d.%d", namespaceOf(set), name, set%17, set%7),
		Args:  []string{"--config=/etc/app/config.yaml", "--log-format=json", fmt.Sprintf("--listen=:%d", port)},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		Env: []corev1.EnvVar{
			from("POD_NAME", "metadata.name"), env("LOG_LEVEL", "info"),
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("256Mi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("512Mi")},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", ReadOnly: true, MountPath: "/etc/app"}, {Name: "tmp", MountPath: "/tmp"},
			{Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
		},
		ReadinessProbe:         probe("/readyz", 10),
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		ImagePullPolicy: corev1.PullIfNotPresent,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	if i == 0 {
		out.LivenessProbe = probe("/healthz", 20)
		secret := corev1.LocalObjectReference{Name: appOf(set) + "-database"}
		out.Env = append(out.Env, corev1.EnvVar{Name: "DATABASE_URL", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: secret, Key: "url"},
		}}, from("POD_IP", "status.podIP"), env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel-collector.observability.svc:4317"),
			env("GOMAXPROCS", "2"), env("FEATURE_SET", fmt.Sprintf("wave-%d", set%9)))
	}
	return out
}

func containerStatus(spec corev1.Container, number int) corev1.ContainerStatus {
	yes, digest := true, fmt.Sprintf("%064x", uint64(number)*0x9e3779b97f4a7c15)
	out := corev1.ContainerStatus{
		Name: spec.Name, Ready: true, Started: &yes, Image: spec.Image,
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: born}},
		ImageID:     "registry.example.com/" + spec.Name + "@sha256:" + digest,
		ContainerID: "containerd://" + digest, AllocatedResources: spec.Resources.Requests,
		Resources: &spec.Resources,
	}
	for _, mount := range spec.VolumeMounts {
		status := corev1.VolumeMountStatus{Name: mount.Name, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly}
		if mount.ReadOnly {
			never := corev1.RecursiveReadOnlyDisabled
			status.RecursiveReadOnly = &never
		}
		out.VolumeMounts = append(out.VolumeMounts, status)
	}
	return out
}
