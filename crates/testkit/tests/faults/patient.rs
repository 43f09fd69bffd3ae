//! The program that the system lets down: loop, pool, timers, I/O and wake-ups from other threads.

use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::net::UnixStream,
    time::Duration,
};

use ebbtide::{App, Exit, reactor::Async, sleep};

/// Enough for each call to be made some ten times.
const ROUNDS: u8 = 12;

/// Works, stops, and ends well, if it is let.
pub(crate) fn works() -> Exit {
    builder().run(async |app| {
        for round in 0..ROUNDS {
            let doubled = app.pool().offload(move || u16::from(round) * 2).await?;
            let halved = app.pool().blocking().offload(move || doubled / 2).await?;
            sleep(Duration::from_millis(1)).await;
            let (left, right) = UnixStream::pair()?;
            let (left, right) = (Async::new(left)?, Async::new(right)?);
            let echo = app.spawn(async move {
                let mut byte = [0];
                right.read_with(|mut right| right.read(&mut byte)).await?;
                right.write_with(|mut right| right.write(&byte)).await?;
                right.get_ref().shutdown(Shutdown::Both)
            })?;
            left.write_with(|mut left| left.write(&[round])).await?;
            let mut back = [0];
            left.read_with(|mut left| left.read(&mut back)).await?;
            echo.await??;
            assert_eq!(
                (u16::from(back[0]), halved),
                (u16::from(round), u16::from(round)),
                "it is what was sent"
            );
        }
        Ok(())
    })
}

/// Serves until it is told to stop, and beats meanwhile.
pub(crate) fn waits() -> Exit {
    builder().run(async |app| {
        app.ready();
        println!("ready");
        let closing = app.closing();
        while !closing.is_triggered() {
            app.pool().offload(|| ()).await?;
            let _ = closing.wrap(sleep(Duration::from_millis(1))).await;
        }
        Ok(())
    })
}

fn builder() -> ebbtide::app::Builder {
    App::builder().observer(|_| {}).drain_timeout(Duration::from_secs(2)).pool(|pool| pool.cpu_threads(2))
}
