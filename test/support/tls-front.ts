// Terminates TLS in front of a coordinator, as an operator's proxy does, with the self-signed certificate of test/fixtures/tls.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import type { Test } from 'tap'
import { PROJECT_DIR } from './project.ts'

const readPem = (name: string) => readFileSync(join(PROJECT_DIR, 'test/fixtures/tls', name))

export type TlsFront = {
  port: number
  /** Connections before this call wait. */
  forwardTo(port: number): void
}

/** Closes after the test. */
export async function startTlsFront(t: Test): Promise<TlsFront> {
  const target = Promise.withResolvers<number>()
  const server = createServer({ cert: readPem('cert.pem'), key: readPem('key.pem') }, async (downstream) => {
    const upstream = connect(await target.promise, '127.0.0.1')
    for (const [from, to] of [
      [downstream, upstream],
      [upstream, downstream],
    ] as const) {
      from.on('error', () => undefined).on('close', () => to.destroy())
      from.pipe(to)
    }
    t.teardown(() => upstream.destroy())
  })
  // A client that refuses the certificate.
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { port: (server.address() as AddressInfo).port, forwardTo: target.resolve }
}
