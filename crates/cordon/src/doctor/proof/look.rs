//! What a container tells of itself, and whether that is what it should.

use std::fmt;

use crate::{Profile, Wiring, run::INIT};

/// What a container told, line by line.
#[derive(Debug, Default)]
pub(crate) struct Look {
    interfaces: Vec<String>,
    routes: Vec<String>,
    bounding: Option<u64>,
    no_new_privileges: bool,
    seccomp: bool,
    outside: Vec<i32>,
    address: Option<String>,
    answer: Option<String>,
    rules: Option<i32>,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Broken {
    /// It told nothing.
    Silent,
    /// An interface beside loopback, or beside the proxy's network.
    Interface(String),
    /// A way to somewhere else.
    Route(String),
    /// An address of the world was not out of reach.
    Outside(i32),
    /// More capabilities than were given.
    Capabilities(u64),
    /// Programs can gain privileges.
    NewPrivileges,
    /// No filter of system calls.
    NoSeccomp,
    /// The door answers no names.
    NoName,
    /// A host that no allowlist has was not refused.
    NotRefused(String),
    /// What the workload is judged by can be written.
    Rules(i32),
}

/// What is run in the container, with its workspace there.
pub(super) fn command(workspace: &str) -> [String; 4] {
    let rules = format!("{workspace}/.cordon");
    [
        INIT.to_owned(),
        "look".to_owned(),
        UNLISTED.to_owned(),
        rules,
    ]
}

impl Look {
    pub(crate) fn read(text: &str) -> Self {
        let mut look = Self::default();
        for line in text.lines() {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            match key {
                "interface" => look.interfaces.push(value.to_owned()),
                "route" => look.routes.push(value.to_owned()),
                "bounding" => look.bounding = u64::from_str_radix(value, 16).ok(),
                "no-new-privileges" => look.no_new_privileges = value == "1",
                "seccomp" => look.seccomp = value != "0",
                "outside-tcp" | "outside-udp" => look.outside.extend(value.parse::<i32>().ok()),
                "address" => look.address = Some(value.to_owned()),
                "answer" => look.answer = Some(value.to_owned()),
                "rules" => look.rules = value.parse().ok(),
                _ => {}
            }
        }
        look
    }

    /// What of it should not be so, for a container with that connection and profile.
    pub(crate) fn judge(&self, wiring: Wiring, profile: Profile) -> Vec<Broken> {
        if self.interfaces.is_empty() || self.outside.is_empty() {
            return vec![Broken::Silent];
        }
        let mut broken = Vec::new();
        let own = self.interfaces.iter().filter(|name| *name != "lo");
        match wiring {
            Wiring::Door => {
                broken.extend(own.cloned().map(Broken::Interface));
                broken.extend(self.routes.iter().cloned().map(Broken::Route));
            }
            Wiring::ProxyContainer => {
                broken.extend(own.skip(1).cloned().map(Broken::Interface));
                let onward = self.routes.iter().filter(|route| has_gateway(route));
                broken.extend(onward.cloned().map(Broken::Route));
            }
        }
        let reached = self
            .outside
            .iter()
            .filter(|error| !UNREACHABLE.contains(*error));
        broken.extend(reached.copied().map(Broken::Outside));
        let extra = self.bounding.unwrap_or(u64::MAX) & !given(profile);
        if extra != 0 {
            broken.push(Broken::Capabilities(extra));
        }
        if !self.no_new_privileges {
            broken.push(Broken::NewPrivileges);
        }
        if !self.seccomp {
            broken.push(Broken::NoSeccomp);
        }
        if self.address.is_none() {
            broken.push(Broken::NoName);
        } else if self.answer.as_deref() != Some(REFUSED) {
            let answer = self.answer.clone().unwrap_or_else(|| "nothing".to_owned());
            broken.push(Broken::NotRefused(answer));
        }
        match self.rules {
            Some(READ_ONLY) => {}
            rules => broken.push(Broken::Rules(rules.unwrap_or_default())),
        }
        broken
    }
}

/// Whether a route leads further than the network that it is on.
fn has_gateway(route: &str) -> bool {
    let gateway = route.split(' ').nth(2).unwrap_or("1");
    gateway.bytes().any(|digit| digit != b'0')
}

/// The capabilities that a profile gives, by their numbers.
fn given(profile: Profile) -> u64 {
    match profile {
        // CHOWN, DAC_OVERRIDE, FOWNER, SETGID and SETUID.
        Profile::Standard => 1 << 0 | 1 << 1 | 1 << 3 | 1 << 6 | 1 << 7,
        Profile::Strict => 0,
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent => f.write_str("it told nothing of itself"),
            Self::Interface(name) => write!(f, "it has the network interface {name}"),
            Self::Route(route) => write!(f, "it has the route {route}"),
            Self::Outside(error) => {
                write!(f, "an address outside is not out of reach (error {error})")
            }
            Self::Capabilities(extra) => {
                write!(f, "it has capabilities that it was not given ({extra:x})")
            }
            Self::NewPrivileges => f.write_str("its programs can gain privileges"),
            Self::NoSeccomp => f.write_str("its system calls are not filtered"),
            Self::NoName => f.write_str("its door answers no names"),
            Self::NotRefused(answer) => write!(
                f,
                "a host that is not listed was answered with {answer} and not with {REFUSED}"
            ),
            Self::Rules(error) => write!(f, "its `.cordon` is not read-only (error {error})"),
        }
    }
}

/// A name that no allowlist can hold for a purpose.
const UNLISTED: &str = "unlisted.cordon.test";

const REFUSED: &str = "403";

/// `ENETUNREACH` and `EHOSTUNREACH`: the packet never left.
const UNREACHABLE: &[i32] = &[101, 113];

/// `EROFS`.
const READ_ONLY: i32 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "interface lo\nbounding 00000000000000cb\neffective 00000000000000cb\nno-new-privileges 1\nseccomp 2\noutside-tcp 101\noutside-udp 101\naddress 127.77.0.1\nanswer 403\nrules 30\n";

    fn judged(text: &str) -> Vec<Broken> {
        Look::read(text).judge(Wiring::Door, Profile::Standard)
    }

    #[test]
    fn a_container_behind_the_door_is_as_it_should_be() {
        assert_eq!(judged(GOOD), []);
    }

    #[test]
    fn whatever_is_not_as_it_should_be_is_named() {
        for (from, to, broken) in [
            (
                "interface lo",
                "interface lo\ninterface eth0",
                Broken::Interface("eth0".into()),
            ),
            (
                "interface lo",
                "interface lo\nroute eth0 0 1",
                Broken::Route("eth0 0 1".into()),
            ),
            ("outside-tcp 101", "outside-tcp 0", Broken::Outside(0)),
            ("outside-udp 101", "outside-udp 110", Broken::Outside(110)),
            (
                "bounding 00000000000000cb",
                "bounding 00000000000020cb",
                Broken::Capabilities(0x2000),
            ),
            (
                "no-new-privileges 1",
                "no-new-privileges 0",
                Broken::NewPrivileges,
            ),
            ("seccomp 2", "seccomp 0", Broken::NoSeccomp),
            ("address 127.77.0.1\n", "", Broken::NoName),
            ("answer 403", "answer 200", Broken::NotRefused("200".into())),
            ("rules 30", "rules 0", Broken::Rules(0)),
            // Not being allowed to write is not the same as not being able to.
            ("rules 30", "rules 13", Broken::Rules(13)),
        ] {
            assert_eq!(judged(&GOOD.replace(from, to)), [broken]);
        }
    }

    #[test]
    fn a_strict_container_has_no_capability_at_all() {
        let look = Look::read(GOOD);
        assert_eq!(
            look.judge(Wiring::Door, Profile::Strict),
            [Broken::Capabilities(0xcb)]
        );
        let text = GOOD.replace("00000000000000cb", "0000000000000000");
        assert_eq!(Look::read(&text).judge(Wiring::Door, Profile::Strict), []);
    }

    #[test]
    fn one_that_tells_nothing_has_proven_nothing() {
        assert_eq!(judged(""), [Broken::Silent]);
        assert_eq!(judged("interface lo\n"), [Broken::Silent]);
    }

    #[test]
    fn beside_a_proxy_container_there_is_one_network_and_no_way_on() {
        let text = GOOD.replace(
            "interface lo",
            "interface lo\ninterface eth0\nroute eth0 0000070A 00000000",
        );
        assert_eq!(
            Look::read(&text).judge(Wiring::ProxyContainer, Profile::Standard),
            []
        );
        let text = text.replace(
            "route eth0 0000070A 00000000",
            "route eth0 00000000 0100070A",
        );
        assert_eq!(
            Look::read(&text).judge(Wiring::ProxyContainer, Profile::Standard),
            [Broken::Route("eth0 00000000 0100070A".into())]
        );
    }
}
