package config

// unbuilt tells of sections that can be set and are checked, but that this version
// can't act on. Whoever builds one deletes its lines here.
func (k *checker) unbuilt() {
	for _, section := range []string{"admin", "trace"} {
		if _, ok := k.c.sectionSource(section); ok {
			k.warn(section, "checked, but without effect: not built into this version")
		}
	}
}
