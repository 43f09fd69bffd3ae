//! Facts about what systemd is told.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use ebbtide_shutdown::systemd::{Notifier, watchdog_interval_from};

/// In place of systemd: a socket in a directory of its own.
struct Systemd {
    folder: PathBuf,
    socket: UnixDatagram,
}

impl Systemd {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("ebbtide-{}-{test}", process::id()));
        fs::create_dir(&folder).unwrap();
        let socket = UnixDatagram::bind(folder.join("notify")).unwrap();
        Self { folder, socket }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("notify")
    }

    fn told(&self) -> String {
        told(&self.socket)
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

fn told(socket: &UnixDatagram) -> String {
    let mut message = [0; 512];
    let length = socket.recv(&mut message).unwrap();
    String::from_utf8(message[..length].to_vec()).unwrap()
}

/// Variables as an environment has them.
fn vars<'v>(vars: &'v [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> + 'v {
    |name| vars.iter().find(|(has, _)| *has == name).map(|(_, value)| (*value).into())
}

#[test]
fn each_message_is_a_datagram_as_systemd_wants_it() {
    let systemd = Systemd::new("messages");
    let notifier = Notifier::to(systemd.path()).unwrap();
    notifier.ready().unwrap();
    assert_eq!(systemd.told(), "READY=1");
    notifier.stopping().unwrap();
    assert_eq!(systemd.told(), "STOPPING=1");
    notifier.alive().unwrap();
    assert_eq!(systemd.told(), "WATCHDOG=1");
    notifier.extend_timeout(Duration::from_millis(2500)).unwrap();
    assert_eq!(systemd.told(), "EXTEND_TIMEOUT_USEC=2500000");
    notifier.extend_timeout(Duration::MAX).unwrap();
    assert_eq!(systemd.told(), format!("EXTEND_TIMEOUT_USEC={}", u64::MAX));
    notifier.status("draining: 3 left").unwrap();
    assert_eq!(systemd.told(), "STATUS=draining: 3 left");
}

#[test]
fn a_status_cannot_say_anything_else() {
    let systemd = Systemd::new("status");
    let notifier = Notifier::to(systemd.path()).unwrap();
    notifier.status("one\nREADY=1\r\nMAINPID=1").unwrap();
    assert_eq!(systemd.told(), "STATUS=one READY=1  MAINPID=1");
}

#[test]
fn the_socket_is_the_one_of_the_variable_or_none() {
    assert!(Notifier::from_vars(|_| None).unwrap().is_none());
    let systemd = Systemd::new("variable");
    let path = systemd.path();
    let found = Notifier::from_vars(vars(&[("NOTIFY_SOCKET", path.to_str().unwrap())]));
    found.unwrap().unwrap().ready().unwrap();
    assert_eq!(systemd.told(), "READY=1");
}

#[cfg(target_os = "linux")]
#[test]
fn the_socket_may_be_abstract() {
    use std::os::{linux::net::SocketAddrExt as _, unix::net::SocketAddr};

    let name = format!("ebbtide-{}-abstract", process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let found = Notifier::from_vars(vars(&[("NOTIFY_SOCKET", &format!("@{name}"))]));
    found.unwrap().unwrap().ready().unwrap();
    assert_eq!(told(&socket), "READY=1");
}

#[test]
fn a_socket_that_cannot_be_used_is_an_error_that_says_so() {
    for value in ["", "relative", "vsock:2:1234", &format!("/{}", "x".repeat(500))] {
        let error = Notifier::from_vars(vars(&[("NOTIFY_SOCKET", value)])).unwrap_err().to_string();
        let expected =
            format!("systemd is not told anything: NOTIFY_SOCKET is {value:?}, which cannot be used: ");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn nobody_who_listens_is_an_error_and_no_panic() {
    let nowhere = Path::new("/nonexistent/ebbtide/notify");
    assert_eq!(Notifier::to(nowhere).unwrap().ready().unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_message_that_has_no_room_is_an_error_and_not_waited_for() {
    /// More than any system keeps for a socket that is not read.
    const MESSAGES: usize = 1_000_000;
    let systemd = Systemd::new("room");
    let notifier = Notifier::to(systemd.path()).unwrap();
    let refused = (0..MESSAGES).find_map(|_| notifier.alive().err()).unwrap();

    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(systemd.told(), "WATCHDOG=1");
    notifier.ready().unwrap();
}

#[test]
fn the_watchdog_is_fed_twice_in_its_time_and_only_by_whom_it_asks() {
    let ours = process::id().to_string();
    let other = (process::id() + 1).to_string();
    let second = Some(Duration::from_secs(1));
    let table: [(&[(&str, &str)], _); 5] = [
        (&[], None),
        (&[("WATCHDOG_PID", &ours)], None),
        (&[("WATCHDOG_USEC", "2000000")], second),
        (&[("WATCHDOG_USEC", "2000000"), ("WATCHDOG_PID", &ours)], second),
        (&[("WATCHDOG_USEC", "2000000"), ("WATCHDOG_PID", &other)], None),
    ];
    for (variables, interval) in table {
        assert_eq!(watchdog_interval_from(vars(variables)), Ok(interval), "{variables:?}");
    }
}

#[test]
fn a_bad_number_is_ignored_and_said_to_be() {
    for bad in ["", "0", "-1", "2s", "99999999999999999999"] {
        let (usec, pid) = ([("WATCHDOG_USEC", bad)], [("WATCHDOG_USEC", "1"), ("WATCHDOG_PID", bad)]);
        for (variables, name) in [(&usec[..], "WATCHDOG_USEC"), (&pid[..], "WATCHDOG_PID")] {
            let error = watchdog_interval_from(vars(variables)).unwrap_err().to_string();
            let expected = format!(
                "systemd's watchdog is ignored: {name} is {bad:?}, which is not a whole number above zero"
            );
            assert_eq!(error, expected);
        }
    }
}
