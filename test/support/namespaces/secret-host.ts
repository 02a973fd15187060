// A server to which boxes send requests with a secret, through any replica. It holds its responses open.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createCertificate } from '../certificate.ts'
import { createTempDir } from '../temp-dir.ts'
import { PROXY_ADDRESS } from './network.ts'

export const SECRET_HOST = 'api.example.com'
const PORT = 443

/** `address` is that of the replica that sends the request. */
export type HeldRequest = { address: string; credential: string | undefined; closed: Promise<unknown> }

/** Gives this machine a name of the server. Call it once, on an own machine (own-machine.ts). */
export async function startSecretHost(t: Test) {
  const dir = createTempDir(t, 'secret-host')
  const hosts = join(dir, 'hosts')
  writeFileSync(hosts, `${readFileSync('/etc/hosts', 'utf8')}\n${PROXY_ADDRESS} ${SECRET_HOST}\n`)
  execFileSync('mount', ['--bind', hosts, '/etc/hosts'])
  const certificate = createCertificate(dir, SECRET_HOST)
  /** By path. */
  const held = new Map<string, HeldRequest>()
  const server = createServer(certificate, (request, response) => {
    const { socket } = request
    held.set(request.url ?? '', {
      address: socket.remoteAddress ?? '',
      credential: request.headers.authorization,
      closed: once(socket, 'close'),
    })
    response.writeHead(200).write('held\n')
  })
  server.listen(PORT, PROXY_ADDRESS)
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    held,
    /** Of the replicas. */
    env: {
      BOXWOOD_SECRETS_PRIVATE: '10.0.0.0/24',
      NODE_EXTRA_CA_CERTS: join(dir, 'ca.pem'),
    },
  }
}

export type SecretHost = Awaited<ReturnType<typeof startSecretHost>>
