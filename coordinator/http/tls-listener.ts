// A second port of the coordinator, for HTTPS with a certificate from files. It serves the same as the first one.
import { readFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type TlsOptions } from 'node:tls'
import { watch } from 'chokidar'
import type { Logger } from 'pino'
import { StartError } from '../base/start-error.ts'
import { type Address, type ConnectionLimits, createListenError } from './listen.ts'

export type TlsListenerOptions = {
  address: Address
  /** Files in the PEM format: the certificate with its chain, and the private key. They are read again when they change. */
  certFile: string
  keyFile: string
  /** Its connections include those of this listener. */
  server: Server
  limits: ConnectionLimits
  log: Pick<Logger, 'info' | 'warn'>
}

export type TlsListener = {
  port: number
  close(): Promise<void>
}

/** Some programs write the certificate before the key. */
const SETTLE_MS = 500

/** @throws StartError when the address or the files cannot be used */
export async function listenWithTls(options: TlsListenerOptions): Promise<TlsListener> {
  const { address, certFile, keyFile, server, limits, log } = options
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
      handshakeTimeout: limits.headersTimeoutSeconds * 1000,
      allowHalfOpen: true,
      noDelay: true,
    })
  }

  const sockets = new Set<Socket>()
  listener.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  // The HTTP server limits the connections after the handshake.
  listener.maxConnections = limits.maxConnections
  listener.on('secureConnection', (socket) => server.emit('connection', socket))
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
    async close() {
      clearTimeout(reloadTimer)
      await watcher.close()
      const closed = new Promise((resolve) => listener.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
