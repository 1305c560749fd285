//! What is wrong with the settings of federation.

use aip_protocol::name::Domain;
use url::Url;

use super::super::Settings;
use super::super::federation::static_peer;

impl Settings {
    pub(super) fn check_federation(&self, found: &mut Vec<String>) {
        let federation = &self.federation;
        for (key, domains) in [("allowed", &federation.allowed), ("blocked", &federation.blocked)] {
            for domain in domains {
                if !Domain::parse(domain).is_ok_and(|parsed| parsed.as_str() == domain) {
                    found.push(format!(
                        "`federation.{key}` holds {domain:?}, which is no domain in its plain form: write example.org"
                    ));
                }
            }
        }
        for entry in &federation.static_peers {
            if static_peer(entry).is_none_or(|(domain, url)| !self.is_good_peer(&domain, &url)) {
                found.push(format!(
                    "`federation.static_peers` holds {entry:?}: write domain=https://hub.example.org, another domain than \
                     this hub's, without path, user and query (http only with `egress.allow_http`)"
                ));
            }
        }
    }

    fn is_good_peer(&self, domain: &Domain, url: &Url) -> bool {
        let scheme = url.scheme() == "https" || (url.scheme() == "http" && self.egress.allow_http);
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let anonymous = url.username().is_empty() && url.password().is_none();
        scheme && plain && anonymous && url.has_host() && domain.as_str() != self.hub.domain
    }
}
