//! Calls whose answers carry credentials.
//!
//! Signed again with real credentials, such a call hands out real ones: session keys, access keys, registry logins. It
//! is recognised by its name, wherever the protocols of AWS put it, and where the answer is not sure, the call counts
//! as minting. Passwords that a caller stores in a service itself are not credentials in this sense.

use crate::{
    Head,
    canonical::{self, PathRule},
};

/// What a request head tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The answer carries no credentials.
    Harmless,
    /// The answer carries credentials; the name is the operation's.
    Mints(&'static str),
    /// The operation is named in the body: give the whole body, of [`MAX_BODY`] at most, to [`judge_body`]. A longer
    /// body counts as minting.
    NeedsBody,
    /// The operation is named in the body, and the body is compressed. Counts as minting.
    Unreadable,
}

/// Judges a request by its head. `service` is the signing name, if the request is signed.
#[must_use]
pub fn judge(head: &Head<'_>, service: Option<&str>) -> Verdict {
    let call = Call { head, service };
    let (path, query) = canonical::split_target(head.target);
    let named = call
        .by_target()
        .or_else(|| call.by_path(path))
        .or_else(|| call.by_query(query));
    if let Some(name) = named {
        return Verdict::Mints(name);
    }
    if !QUERY_SERVICES.iter().any(|service| call.serves(service)) {
        return Verdict::Harmless;
    }
    let compressed = head
        .values("content-encoding")
        .any(|value| !value.trim_ascii().eq_ignore_ascii_case(b"identity"));
    if compressed {
        Verdict::Unreadable
    } else {
        Verdict::NeedsBody
    }
}

/// Judges a form body: the minting operation that it names.
#[must_use]
pub fn judge_body(body: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(body);
    actions(&text).find_map(|action| operation(&action, |_| true))
}

/// Longest body to look into. The longest harmless calls are policies of IAM, which stay well below.
pub const MAX_BODY: usize = 128 * 1024;

/// Services that take the operation from a form, and mint.
const QUERY_SERVICES: &[&str] = &["iam", "redshift", "sts"];

/// Operations by name, with the services they are restricted to because others use the same name. A star stands for
/// any ending.
const OPERATIONS: &[(&str, &[&str])] = &[
    ("AssumeDecoratedRoleWithSAML", &[]),
    ("AssumeRole*", &[]),
    ("AssumeRoot", &[]),
    ("CreateAccessKey", &[]),
    ("CreateBucketAccessKey", &[]),
    ("CreateBuild", &["gamelift"]),
    ("CreateContainerServiceRegistryLogin", &[]),
    ("CreateOAuth2Token*", &[]),
    ("CreateServiceSpecificCredential", &[]),
    ("GetAccessToken", &["license-manager", "ssm"]),
    ("GetAuthorizationToken", &[]),
    ("GetBucketAccessKeys", &[]),
    ("GetClusterCredentials*", &[]),
    ("GetClusterSessionCredentials", &[]),
    ("GetComputeAccess", &[]),
    ("GetComputeAuthToken", &[]),
    ("GetCredentials", &["redshift-serverless"]),
    ("GetCredentialsForIdentity", &[]),
    ("GetDelegatedAccessToken", &[]),
    ("GetFederationToken", &[]),
    ("GetJobDetails", &["codepipeline"]),
    ("GetManagedEndpointSessionCredentials", &[]),
    ("GetOpenIdToken*", &[]),
    ("GetResourceApiKey", &[]),
    ("GetResourceOauth2Token", &[]),
    ("GetRoleCredentials", &[]),
    ("GetSessionToken", &[]),
    ("GetSpaceCredentialsForOrganization", &[]),
    ("GetSpaceDataAccess", &[]),
    ("GetTemporaryDataLocationCredentials", &[]),
    ("GetTemporaryGlue*", &[]),
    ("GetThirdPartyJobDetails", &["codepipeline"]),
    ("GetWorkloadAccessToken*", &[]),
    ("PollForJobs", &["codepipeline"]),
    ("RequestUploadCredentials", &[]),
    ("ResetServiceSpecificCredential", &[]),
];

/// Operations by path, in lower case, and the service that has it. A star stands for one segment.
const PATHS: &[(&str, &str, &str)] = &[
    ("GetRoleCredentials", "", "federation/credentials"),
    ("GetRoleCredentials", "account-access", "access/credentials"),
    (
        "GetAuthorizationToken",
        "codeartifact",
        "v1/authorization-token",
    ),
    ("GetFederationToken", "connect", "user/federate/*"),
    ("GetConnection", "datazone", "v2/domains/*/connections/*"),
    (
        "GetEnvironmentCredentials",
        "datazone",
        "v2/domains/*/environments/*/credentials",
    ),
    (
        "AssumeFleetRole",
        "deadline",
        "*/farms/*/fleets/*/read-roles",
    ),
    (
        "AssumeFleetRole",
        "deadline",
        "*/farms/*/fleets/*/workers/*/fleet-roles",
    ),
    (
        "AssumeQueueRole",
        "deadline",
        "*/farms/*/fleets/*/workers/*/queue-roles",
    ),
    (
        "AssumeQueueRole",
        "deadline",
        "*/farms/*/queues/*/read-roles",
    ),
    (
        "AssumeQueueRole",
        "deadline",
        "*/farms/*/queues/*/user-roles",
    ),
    (
        "AssumeRoleForPodIdentity",
        "eks-auth",
        "clusters/*/assume-role-for-pod-identity",
    ),
    (
        "GetManagedEndpointSessionCredentials",
        "emr-containers",
        "virtualclusters/*/endpoints/*/credentials",
    ),
    (
        "GetResourceApiKey",
        "bedrock-agentcore",
        "identities/api-key",
    ),
    (
        "GetResourceOauth2Token",
        "bedrock-agentcore",
        "identities/oauth2/token",
    ),
    (
        "GetDataAccess",
        "s3",
        "v20180820/accessgrantsinstance/dataaccess",
    ),
    ("CreateOAuth2Token", "signin", "v1/token"),
    ("CreateToken", "sso-oauth", "token"),
    ("CreateToken", "oidc", "token"),
];

struct Call<'a> {
    head: &'a Head<'a>,
    service: Option<&'a str>,
}

impl Call<'_> {
    /// JSON protocols name the operation in a header, behind the name of the interface.
    fn by_target(&self) -> Option<&'static str> {
        self.head.values("x-amz-target").find_map(|value| {
            let value = String::from_utf8_lossy(value);
            let name = value.rsplit('.').next().unwrap_or_default();
            operation(name.trim_ascii(), |service| self.serves(service))
        })
    }

    /// REST has paths of its own; other protocols end the path with the operation.
    fn by_path(&self, path: &str) -> Option<&'static str> {
        let path = canonical::decode(path).unwrap_or_else(|| path.to_owned());
        let segments = canonical::segments(&path);
        let listed = PATHS
            .iter()
            .find(|(_, service, pattern)| {
                (service.is_empty() || self.serves(service)) && matches(pattern, &segments)
            })
            .map(|(name, _, _)| *name);
        listed.or_else(|| {
            // The path of S3 is a key, which may have any name.
            let last = segments.last().filter(|_| !self.is_s3())?;
            operation(last, |service| self.serves(service))
        })
    }

    fn by_query(&self, query: &str) -> Option<&'static str> {
        let action = || actions(query).find_map(|name| operation(&name, |_| true));
        let session = || {
            let mut names = query
                .split('&')
                .map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name))
                .filter_map(canonical::decode);
            (self.is_s3() && names.any(|name| name.eq_ignore_ascii_case("session")))
                .then_some("CreateSession")
        };
        action().or_else(session)
    }

    fn is_s3(&self) -> bool {
        self.service
            .is_some_and(|service| PathRule::of(service) == PathRule::Single)
    }

    /// Is the request for that service, by its signature or by its host?
    fn serves(&self, service: &str) -> bool {
        let labels = self.head.authority.split(['.', ':']);
        self.service
            .into_iter()
            .chain(labels)
            .map(|name| name.strip_suffix("-fips").unwrap_or(name))
            .any(|name| name.eq_ignore_ascii_case(service))
    }
}

/// All values of `Action` in a form or query, however it is encoded.
fn actions(form: &str) -> impl Iterator<Item = String> {
    form.split(['&', ';'])
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| {
            canonical::decode(name)
                .is_some_and(|name| name.trim_ascii().eq_ignore_ascii_case("Action"))
        })
        .filter_map(|(_, value)| canonical::decode(&value.replace('+', " ")))
}

fn operation(name: &str, serves: impl Fn(&str) -> bool) -> Option<&'static str> {
    let name = name.trim_ascii();
    let same = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => name
            .get(..start.len())
            .is_some_and(|prefix| prefix.eq_ignore_ascii_case(start)),
        None => name.eq_ignore_ascii_case(pattern),
    };
    OPERATIONS
        .iter()
        .find(|(pattern, services)| {
            same(pattern) && (services.is_empty() || services.iter().any(|service| serves(service)))
        })
        .map(|(pattern, _)| pattern.trim_end_matches('*'))
}

fn matches(pattern: &str, segments: &[&str]) -> bool {
    let mut parts = pattern.split('/');
    segments.iter().all(|segment| {
        parts
            .next()
            .is_some_and(|part| part == "*" || part.eq_ignore_ascii_case(segment))
    }) && parts.next().is_none()
}

#[cfg(test)]
mod tests;
