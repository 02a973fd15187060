// Ends TLS of programs on boxes, with a certificate of the authority of the workspace.
import { createSecureContext, createServer, type SecureContext, type TLSSocket } from 'node:tls'
import type { TcpOverWebSocket } from '../../../shared/tcp-over-websocket.ts'
import type { LeafCertificate } from '../../secrets/types.ts'

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
export function endTls(stream: TcpOverWebSocket, options: TlsEndOptions): void {
  const { host, leaf, handshakeTimeoutMs, onSecure, onFailure } = options
  const server = createServer({
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: handshakeTimeoutMs,
    minVersion: 'TLSv1.2',
    SNICallback(name, done) {
      done(null, name.toLowerCase() === host ? getContext(leaf) : undefined)
    },
  })
  server.once('secureConnection', (socket) => {
    // Node leaves the stream open, which still has to send the last bytes.
    socket.once('close', () => stream.destroySoon())
    onSecure(socket)
  })
  server.once('tlsClientError', (error, socket) => {
    socket.destroy()
    stream.destroySoon()
    onFailure(error)
  })
  server.emit('connection', stream)
}
