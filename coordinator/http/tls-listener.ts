// A second port of the coordinator, for HTTPS with a certificate from files. It serves the same as the first one.
import { readFile } from 'node:fs/promises'
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type TlsOptions } from 'node:tls'
import { watch } from 'chokidar'
import type { Logger } from 'pino'
import { StartError } from '../base/start-error.ts'
import { type Address, type ConnectionLimits, createListenError, type Listening } from './listen.ts'

export type TlsListenerOptions = {
  address: Address
  /** Files in the PEM format: the certificate with its chain, and the private key. They are read again when they change. */
  certFile: string
  keyFile: string
  /** Serves the connections of this listener too, and limits them together with its own. */
  listening: Pick<Listening, 'server' | 'connections'>
  limits: Pick<ConnectionLimits, 'headersTimeoutSeconds'>
  log: Pick<Logger, 'info' | 'warn'>
}

export type TlsListener = {
  port: number
  /** Accepts no further connections. */
  stopListening(): void
  close(): Promise<void>
}

/** Clients start the handshake at once. */
const MAX_HANDSHAKE_MS = 10_000
/** Some programs write the certificate before the key. */
const SETTLE_MS = 500

/** @throws StartError when the address or the files cannot be used */
export async function listenWithTls(options: TlsListenerOptions): Promise<TlsListener> {
  const { address, certFile, keyFile, listening, limits, log } = options
  const readFiles = async (): Promise<TlsOptions> => ({
    cert: await readFile(certFile),
    key: await readFile(keyFile),
  })
  const listener = await createListener().catch((cause: unknown) => {
    throw new StartError(
      `The certificate in ${certFile} and its key in ${keyFile} cannot be used: ${(cause as Error).message}. Check BOXWOOD_TLS_CERT and BOXWOOD_TLS_KEY.`,
      { cause },
    )
  })

  async function createListener() {
    return createServer({
      ...(await readFiles()),
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: Math.min(MAX_HANDSHAKE_MS, limits.headersTimeoutSeconds * 1000),
      allowHalfOpen: true,
      noDelay: true,
    })
  }

  // A TLSSocket does not expose its TCP socket, but has the same addresses.
  const sockets = new Map<string, Socket>()
  listener.on('connection', (socket: Socket) => {
    const peer = formatPeer(socket)
    // The kernel gives the addresses of a connection to another one only when the first one was reset.
    sockets.get(peer)?.destroy()
    sockets.set(peer, socket)
    socket.once('close', () => {
      if (sockets.get(peer) === socket) sockets.delete(peer)
    })
    listening.connections.add(socket)
  })
  listener.on('secureConnection', (socket) => {
    const tcpSocket = sockets.get(formatPeer(socket))
    if (tcpSocket === undefined) return void socket.destroy()
    listening.connections.replace(tcpSocket, socket)
    listening.server.emit('connection', socket)
  })
  // A client that does not speak TLS, or does not accept the certificate.
  listener.on('tlsClientError', (_error, socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    listener.once('error', (error) => reject(createListenError(error, address, 'BOXWOOD_TLS_LISTEN')))
    listener.listen({ host: address.host, port: address.port }, resolve)
  })

  let reloadTimer: NodeJS.Timeout | undefined
  const watcher = watch([certFile, keyFile], { ignoreInitial: true }).on('all', () => {
    clearTimeout(reloadTimer)
    reloadTimer = setTimeout(() => void reload(), SETTLE_MS).unref()
  })

  async function reload(): Promise<void> {
    try {
      listener.setSecureContext(await readFiles())
      log.info({ certFile }, 'read the certificate again')
    } catch (err) {
      log.warn(
        { err, certFile, keyFile },
        'the changed certificate cannot be used; continuing with the previous one',
      )
    }
  }

  return {
    port: (listener.address() as AddressInfo).port,
    stopListening: () => void listener.close(),
    async close() {
      clearTimeout(reloadTimer)
      await watcher.close()
      const closed = new Promise((resolve) => listener.close(resolve))
      for (const socket of sockets.values()) socket.destroy()
      await closed
    },
  }
}

const formatPeer = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`
