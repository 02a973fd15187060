// Ends TLS of programs on boxes, with a certificate of the authority of the workspace.
import type { Duplex } from 'node:stream'
import { createSecureContext, createServer, type SecureContext, type TLSSocket } from 'node:tls'
import type { LeafCertificate } from '../../boxes/secrets/types.ts'

/** Parsing a certificate takes longer than the rest of a handshake. */
const contexts = new WeakMap<LeafCertificate, SecureContext>()

function getContext(leaf: LeafCertificate): SecureContext {
  const context = contexts.get(leaf) ?? createSecureContext({ key: leaf.key, cert: leaf.certificate })
  contexts.set(leaf, context)
  return context
}

export type TlsEndOptions = {
  host: string
  leaf: LeafCertificate
  handshakeTimeoutMs: number
  onSecure(socket: TLSSocket): void
  onFailure(error: Error): void
}

/** A client that does not send the host as the server name gets no certificate, so that its handshake fails. */
export function endTls(stream: Duplex, options: TlsEndOptions): void {
  const { host, leaf, handshakeTimeoutMs, onSecure, onFailure } = options
  const server = createServer({
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: handshakeTimeoutMs,
    minVersion: 'TLSv1.2',
    SNICallback(name, done) {
      done(null, name.toLowerCase() === host ? getContext(leaf) : undefined)
    },
  })
  server.once('secureConnection', onSecure)
  server.once('tlsClientError', (error, socket) => {
    socket.destroy()
    stream.destroy()
    onFailure(error)
  })
  server.emit('connection', stream)
}
