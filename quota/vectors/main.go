// Command vectors records what component-helpers' PodRequests and PodLimits answer, for tests/vectors.rs.
//
// Run in this folder: go run . > vectors.txt
//
// Each line is a JSON object: a generated pod, the options, the requests and the limits.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

type line struct {
	Pod             json.RawMessage   `json:"pod"`
	UseStatus       bool              `json:"useStatus"`
	SkipPodLevel    bool              `json:"skipPodLevel"`
	ExcludeOverhead bool              `json:"excludeOverhead"`
	Requests        map[string]string `json:"requests"`
	Limits          map[string]string `json:"limits"`
}

var (
	names    = []v1.ResourceName{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu"}
	texts    = []string{"0", "100m", "0.5", "1", "1.500", "1500m", "2", "3", "64Mi", "128Mi", "1Gi", "1G", "1e3", "0.1Ki"}
	random   = rand.New(rand.NewSource(20260917))
	infeasib = v1.PodCondition{Type: v1.PodResizePending, Reason: v1.PodReasonInfeasible}
	deferred = v1.PodCondition{Type: v1.PodResizePending, Reason: v1.PodReasonDeferred}
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for range 400 {
		text := must(json.Marshal(pod()))
		var read v1.Pod
		if err := json.Unmarshal(text, &read); err != nil {
			panic(err)
		}
		l := line{Pod: text, UseStatus: oneIn(2) || oneIn(2), SkipPodLevel: oneIn(4), ExcludeOverhead: oneIn(6)}
		options := helpers.PodResourcesOptions{
			UseStatusResources:    l.UseStatus,
			SkipPodLevelResources: l.SkipPodLevel,
			ExcludeOverhead:       l.ExcludeOverhead,
		}
		l.Requests = shown(helpers.PodRequests(&read, options))
		l.Limits = shown(helpers.PodLimits(&read, options))
		fmt.Fprintf(out, "%s\n", must(json.Marshal(l)))
	}
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

func shown(list v1.ResourceList) map[string]string {
	result := map[string]string{}
	for name, quantity := range list {
		result[string(name)] = quantity.String()
	}
	return result
}

func oneIn(n int) bool { return random.Intn(n) == 0 }

func list() v1.ResourceList {
	if oneIn(4) {
		return nil
	}
	result := v1.ResourceList{}
	for range random.Intn(4) {
		result[names[random.Intn(len(names))]] = resource.MustParse(texts[random.Intn(len(texts))])
	}
	return result
}

func container(name string) v1.Container {
	return v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: list(), Limits: list()}}
}

func status(name string) v1.ContainerStatus {
	result := v1.ContainerStatus{Name: name, AllocatedResources: list()}
	if !oneIn(3) {
		result.Resources = &v1.ResourceRequirements{Requests: list(), Limits: list()}
	}
	return result
}

func pod() *v1.Pod {
	p := &v1.Pod{}
	for at := range 1 + random.Intn(3) {
		p.Spec.Containers = append(p.Spec.Containers, container(fmt.Sprintf("c%d", at)))
		if oneIn(2) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status(fmt.Sprintf("c%d", at)))
		}
	}
	for at := range random.Intn(4) {
		c := container(fmt.Sprintf("i%d", at))
		if oneIn(2) {
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		if oneIn(2) {
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, status(c.Name))
		}
	}
	if oneIn(3) {
		p.Spec.Resources = &v1.ResourceRequirements{Requests: list(), Limits: list()}
	}
	if oneIn(3) {
		p.Spec.Overhead = list()
	}
	switch random.Intn(5) {
	case 0, 1:
		p.Status.Conditions = []v1.PodCondition{infeasib}
	case 2:
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady}, deferred, infeasib}
	}
	return p
}
