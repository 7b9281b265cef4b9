package config

// unbuilt tells of what can be set and is checked, but that this version can't act on.
// Whoever builds it deletes its lines here.
func (k *checker) unbuilt() {
	if k.c.Admin.CredentialsFile != "" {
		k.warn("admin.credentials_file", "checked, but without effect: not built into this version, so /metrics is served to this machine only")
	}
}
