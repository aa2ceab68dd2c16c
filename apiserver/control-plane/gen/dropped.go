package main

// dropped has the members whose feature is off by default: the server decodes them and removes
// them before it stores the object.
var dropped = map[string]bool{
	"io.k8s.api.core.v1.PodSpec.evictionResponders": true,
	"io.k8s.api.core.v1.PodSpec.schedulingGroup":    true,
}
