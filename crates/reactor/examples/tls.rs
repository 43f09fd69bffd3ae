//! TLS on a loop, with futures-rustls: it wants `AsyncRead` and `AsyncWrite`, and nothing else.
//!
//! ```sh
//! cargo run -p ebbtide-reactor --example tls
//! ```

use std::{
    error::Error,
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use ebbtide_reactor::{Async, Runtime, spawn_named};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use futures_rustls::{
    TlsAcceptor, TlsConnector,
    rustls::{
        ClientConfig, RootCertStore, ServerConfig,
        pki_types::{PrivateKeyDer, ServerName},
    },
};

fn main() -> Result<(), Box<dyn Error>> {
    let (server, client) = configurations()?;
    Runtime::new().block_on(async {
        let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
        let address = listener.get_ref().local_addr()?;
        let serving = spawn_named("server", async move {
            let (stream, _) = listener.accept().await?;
            let mut stream = TlsAcceptor::from(server).accept(stream).await?;
            let mut request = [0; 5];
            stream.read_exact(&mut request).await?;
            request.reverse();
            stream.write_all(&request).await?;
            stream.close().await
        })
        .map_err(|refused| refused.why)?;

        let stream = Async::<TcpStream>::connect(address).await?;
        let mut stream =
            TlsConnector::from(client).connect(ServerName::try_from("localhost")?, stream).await?;
        stream.write_all(b"tides").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (_, session) = stream.get_ref();
        println!("{:?} over {:?}", answer, session.protocol_version().ok_or("no handshake")?);
        serving.await??;
        if answer == "sedit" { Ok(()) } else { Err(format!("a wrong answer: {answer:?}").into()) }
    })
}

/// A server with a certificate of its own making, and a client that trusts it.
fn configurations() -> Result<(Arc<ServerConfig>, Arc<ClientConfig>), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let server = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key)?;
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok((Arc::new(server), Arc::new(client)))
}
