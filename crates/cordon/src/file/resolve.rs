//! What a configuration file means on this host.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use cordon_secrets::{
    MaskedSecret, Redactor, Secret, SecretReplacements, SecretsError, SigningCredential,
    prepare_secrets,
};
use cordon_yaml::Position;

use super::{
    FileError, FileErrorKind, FileNotice, HostEnv, Masked, SandboxFile, Signing,
    pool::{Answer, Pool},
    value::{Given, Value},
};
use crate::{BuildMode, ResourceLimits};

/// A configuration with every value in place. Its printed form holds none.
pub struct Resolved {
    /// Variables for the container, in order of their names, without those that a credential below sets.
    pub env: Vec<(String, String)>,
    /// Secrets that the container sees as surrogates.
    pub masked: Vec<MaskedSecret>,
    /// Credentials whose signatures are made anew outside.
    pub signing: Vec<SigningCredential>,
    /// What a task may use of the machine.
    pub limits: ResourceLimits,
    /// What the build of the image may reach, where the file says so.
    pub build_network: Option<BuildMode>,
    /// Whether the network sandbox is on.
    pub network: bool,
    /// The allowlist that the file names.
    pub allowlist: Option<PathBuf>,
    /// The file that secrets come from. A container must not see it.
    pub secrets_file: Option<PathBuf>,
    /// What a person should know.
    pub notices: Vec<FileNotice>,
    /// Secrets that the container gets as they are.
    exposed: Vec<Secret>,
    file: String,
    /// Which entry sets which variable.
    positions: BTreeMap<String, Position>,
}

/// The whole environment of the container, and what the proxy and the logs need to know of it.
pub struct PreparedEnv {
    /// Variables for the container, plain ones and surrogates, in order of their names.
    pub env: Vec<(String, String)>,
    /// What the proxy does with the surrogates.
    pub replacements: SecretReplacements,
    /// Removes every secret of the configuration from a text, the unmasked ones too.
    pub redactor: Redactor,
}

impl SandboxFile {
    /// Looks up every value: in the environment, the secrets file, or by running the command that the file names.
    ///
    /// # Errors
    ///
    /// When a variable or a secret is missing, or a source of secrets cannot be used.
    pub async fn resolve(&self, host: &HostEnv) -> Result<Resolved, FileError> {
        let mut resolver = Resolver::new(self, host);
        resolver.env().await?;
        resolver.pass_env()?;
        let (mut masked, mut signing, mut positions) = (Vec::new(), Vec::new(), BTreeMap::new());
        for entry in &self.masked {
            masked.extend(resolver.masked(entry).await?);
            positions.insert(entry.env_var.clone(), entry.at);
        }
        for entry in &self.signing {
            let credential = resolver.signing(entry).await?;
            let variables = credential.iter().flat_map(variables_of);
            positions.extend(variables.map(|(name, _)| (name.to_owned(), entry.at)));
            signing.extend(credential);
        }
        resolver.let_surrogates_win(&masked, &signing)?;
        Ok(Resolved {
            masked,
            signing,
            limits: self.limits.clone(),
            build_network: self.build_network,
            network: self.network.enabled,
            allowlist: self.allowlist(),
            secrets_file: resolver.pool.path()?,
            notices: resolver.notices,
            exposed: resolver.exposed,
            env: Vec::from_iter(
                resolver
                    .plain
                    .into_iter()
                    .map(|(name, plain)| (name, plain.value)),
            ),
            file: self.name.clone(),
            positions,
        })
    }
}

impl SandboxFile {
    /// Looks up the value of one masked secret again; `None` when it is no longer there, or no secret
    /// of the file.
    ///
    /// # Errors
    ///
    /// When its source cannot be used.
    pub async fn look_up(
        &self,
        env_var: &str,
        host: &HostEnv,
    ) -> Result<Option<Secret>, FileError> {
        let Some(entry) = self.masked.iter().find(|entry| entry.env_var == env_var) else {
            return Ok(None);
        };
        let mut resolver = Resolver::new(self, host);
        resolver.value(&entry.value).await
    }
}

impl Resolved {
    /// Draws the surrogates and puts the container's environment together; surrogates win over plain variables.
    ///
    /// # Errors
    ///
    /// When a value cannot be masked: it is too short, or two credentials set the same variable.
    pub fn prepare(self) -> Result<PreparedEnv, FileError> {
        let Self {
            env,
            masked,
            signing,
            exposed,
            file,
            positions,
            ..
        } = self;
        let refused = |error: SecretsError| {
            let position = variable_of(&error).and_then(|variable| positions.get(variable));
            let at = position.copied().unwrap_or(Position { line: 1, column: 1 });
            FileErrorKind::Secrets(error).at(at, &file)
        };
        let prepared = prepare_secrets(masked, signing).map_err(refused)?;
        let redactor =
            Redactor::new(&prepared.replacements).and(exposed.iter().map(Secret::expose));
        let mut variables = BTreeMap::from_iter(env);
        variables.extend(prepared.env);
        Ok(PreparedEnv {
            env: variables.into_iter().collect(),
            replacements: prepared.replacements,
            redactor,
        })
    }
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.env.iter().map(|(name, _)| name);
        f.debug_struct("Resolved")
            .field("env", &Vec::from_iter(names))
            .field("masked", &self.masked)
            .field("signing", &self.signing)
            .field("limits", &self.limits)
            .field("network", &self.network)
            .field("notices", &self.notices)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PreparedEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.env.iter().map(|(name, _)| name);
        f.debug_struct("PreparedEnv")
            .field("env", &Vec::from_iter(names))
            .finish_non_exhaustive()
    }
}

struct Resolver<'a> {
    file: &'a SandboxFile,
    host: &'a HostEnv,
    pool: Pool<'a>,
    plain: BTreeMap<String, Plain>,
    notices: Vec<FileNotice>,
    exposed: Vec<Secret>,
}

/// A variable that the container gets as it is.
struct Plain {
    value: String,
    place: String,
    at: Position,
}

impl<'a> Resolver<'a> {
    fn new(file: &'a SandboxFile, host: &'a HostEnv) -> Self {
        Self {
            file,
            host,
            pool: Pool::new(&file.sources, host, &file.name),
            plain: BTreeMap::new(),
            notices: Vec::new(),
            exposed: Vec::new(),
        }
    }

    async fn env(&mut self) -> Result<(), FileError> {
        for variable in &self.file.env {
            let Some(value) = self.value(&variable.value).await? else {
                continue;
            };
            let Value { at, place, given } = &variable.value;
            if let Given::Secret(secret) | Given::Optional(secret) = given {
                self.notices.push(FileNotice::SecretInContainer {
                    variable: variable.name.clone(),
                    secret: secret.clone(),
                });
                self.exposed.push(Secret::new(value.expose()));
            }
            if value.expose().contains('\0') {
                let place = place.clone();
                return Err(FileErrorKind::Nul { place }.at(*at, &self.file.name));
            }
            let plain = Plain {
                value: value.expose().to_owned(),
                place: place.clone(),
                at: *at,
            };
            self.plain.insert(variable.name.clone(), plain);
        }
        Ok(())
    }

    fn pass_env(&mut self) -> Result<(), FileError> {
        for passed in &self.file.pass_env {
            match self.host_variable(&passed.name, passed.at, &passed.place)? {
                Some(value) => {
                    let plain = Plain {
                        value,
                        place: passed.place.clone(),
                        at: passed.at,
                    };
                    self.plain.insert(passed.name.clone(), plain);
                }
                None => self.notices.push(FileNotice::NotPassed {
                    variable: passed.name.clone(),
                }),
            }
        }
        Ok(())
    }

    async fn masked(&mut self, entry: &Masked) -> Result<Option<MaskedSecret>, FileError> {
        let Some(value) = self.secret(&entry.value).await? else {
            return Ok(None);
        };
        Ok(Some(MaskedSecret {
            env_var: entry.env_var.clone(),
            value,
            scopes: entry.scopes.clone(),
            headers: entry.headers.clone(),
            allow_foreign_credentials: entry.allow_foreign_credentials,
            query: entry.query.clone(),
            path: entry.path,
            body: entry.body.clone(),
        }))
    }

    async fn signing(&mut self, entry: &Signing) -> Result<Option<SigningCredential>, FileError> {
        let variable = |value: &Value, usual: &str| value.name().unwrap_or(usual).to_owned();
        let (Some(access_key_id), Some(secret_access_key)) = (
            self.secret(&entry.access_key_id).await?,
            self.secret(&entry.secret_access_key).await?,
        ) else {
            return Ok(None);
        };
        let session_token = match &entry.session_token {
            Some(value) => self.secret(value).await?,
            None => None,
        };
        let token_variable = entry.session_token.as_ref();
        Ok(Some(SigningCredential {
            access_key_id_env_var: variable(&entry.access_key_id, "AWS_ACCESS_KEY_ID"),
            access_key_id,
            secret_access_key_env_var: variable(&entry.secret_access_key, "AWS_SECRET_ACCESS_KEY"),
            secret_access_key,
            session_token_env_var: token_variable.map(|value| variable(value, "AWS_SESSION_TOKEN")),
            session_token,
            scopes: entry.scopes.clone(),
            allow_credential_minting: entry.allow_credential_minting,
            allow_foreign_credentials: entry.allow_foreign_credentials,
        }))
    }

    /// A value that is to stay outside the container.
    async fn secret(&mut self, value: &Value) -> Result<Option<Secret>, FileError> {
        if let Given::Literal(_) = value.given {
            self.notices.push(FileNotice::SecretInFile {
                place: value.place.clone(),
                file: self.file.name.clone(),
            });
        }
        self.value(value).await
    }

    async fn value(&mut self, value: &Value) -> Result<Option<Secret>, FileError> {
        let Value { at, place, given } = value;
        match given {
            Given::Literal(text) => Ok(Some(Secret::new(text.expose()))),
            Given::Env(name) => match self.host_variable(name, *at, place)? {
                Some(text) => Ok(Some(text.into())),
                None => Err(FileErrorKind::Unset {
                    place: place.clone(),
                    variable: name.clone(),
                }
                .at(*at, &self.file.name)),
            },
            Given::Secret(name) => match self.pool.find(name, value).await? {
                Answer::Found(secret) => Ok(Some(secret)),
                Answer::Missing(why) => Err(why.at(*at, &self.file.name)),
            },
            Given::Optional(name) => match self.pool.find(name, value).await? {
                Answer::Found(secret) => Ok(Some(secret)),
                Answer::Missing(_) => {
                    self.notices.push(FileNotice::SecretMissing {
                        place: place.clone(),
                        secret: name.clone(),
                    });
                    Ok(None)
                }
            },
        }
    }

    fn host_variable(
        &self,
        name: &str,
        at: Position,
        place: &str,
    ) -> Result<Option<String>, FileError> {
        let Some(value) = self.host.value(name) else {
            return Ok(None);
        };
        match value.to_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(FileErrorKind::NotText {
                place: place.to_owned(),
                variable: name.to_owned(),
            }
            .at(at, &self.file.name)),
        }
    }

    /// Takes the variables away that surrogates set, and sees to it that none of the others holds a real value.
    fn let_surrogates_win(
        &mut self,
        masked: &[MaskedSecret],
        signing: &[SigningCredential],
    ) -> Result<(), FileError> {
        let masked = masked
            .iter()
            .map(|secret| (secret.env_var.as_str(), &secret.value));
        let signing = signing.iter().flat_map(variables_of);
        let hidden = Vec::from_iter(masked.chain(signing).filter(|(_, real)| !real.is_empty()));
        for (variable, _) in &hidden {
            self.plain.remove(*variable);
        }
        for (variable, real) in &hidden {
            let real = real.expose();
            let shows = |plain: &&Plain| real.len() >= RECOGNISABLE && plain.value.contains(real);
            if let Some(plain) = self.plain.values().find(shows) {
                let place = plain.place.clone();
                let secret = (*variable).to_owned();
                return Err(FileErrorKind::Unmasked { place, secret }.at(plain.at, &self.file.name));
            }
        }
        if !self.file.network.enabled && !hidden.is_empty() {
            let variables = hidden.iter().map(|(name, _)| (*name).to_owned());
            self.notices.push(FileNotice::NothingReplaced {
                variables: variables.collect(),
            });
        }
        Ok(())
    }
}

/// The variables that a credential sets, with their real values.
fn variables_of(credential: &SigningCredential) -> impl Iterator<Item = (&str, &Secret)> {
    let session_token = credential.session_token_env_var.as_deref();
    [
        Some((
            credential.access_key_id_env_var.as_str(),
            &credential.access_key_id,
        )),
        Some((
            credential.secret_access_key_env_var.as_str(),
            &credential.secret_access_key,
        )),
        session_token.zip(credential.session_token.as_ref()),
    ]
    .into_iter()
    .flatten()
}

/// The variable that an error speaks of.
fn variable_of(error: &SecretsError) -> Option<&str> {
    match error {
        SecretsError::TooShort { env_var, .. }
        | SecretsError::InvalidVariable { env_var }
        | SecretsError::DuplicateVariable { env_var }
        | SecretsError::UnknownVariable { env_var }
        | SecretsError::EmptyValue { env_var }
        | SecretsError::NotAHeaderValue { env_var }
        | SecretsError::NotABodyValue { env_var, .. }
        | SecretsError::LengthChanged { env_var }
        | SecretsError::IncompleteCredential { env_var }
        | SecretsError::NoSessionVariable { env_var }
        | SecretsError::Collision { env_var }
        | SecretsError::InvalidSurrogate { env_var }
        | SecretsError::InvalidScope { env_var, .. } => Some(env_var),
        SecretsError::Random(_)
        | SecretsError::Handover { .. }
        | SecretsError::HandoverVersion { .. } => None,
    }
}

/// A shorter value is refused later, and could stand in another by chance.
const RECOGNISABLE: usize = 8;
