// A server with the install script, the agent bundles and an exchange of enrolment tokens, instead of a coordinator.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify, { type FastifyInstance } from 'fastify'
import { type AgentBundles, createAgentBundles } from '../../coordinator/agents/bundles/agent-bundles.ts'
import { bundleRoutes } from '../../coordinator/agents/bundles/routes.ts'
import { createSigningKey } from '../../coordinator/agents/bundles/signing-key.ts'
import { registerFileSender } from '../../coordinator/http/pages/routes.ts'
import { registerPublicRoutes } from '../../coordinator/http/public-routes.ts'
import { systemClock } from '../../shared/clock.ts'
import { newUuid } from '../../shared/ids.ts'
import { PROJECT_DIR } from './project.ts'

export const TOKEN = 'bxe_0123456789abcdef0123456789abcdef0123456789abcdef'

type Teardown = { teardown(callback: () => unknown): void }
export type Rejection = { status: number; message: string }
export type Exchange = Record<string, unknown>

/** `key`: an agent accepts the bundles of one key only; without it, each call creates one. */
type BundleOptions = {
  dataDir?: string
  version?: string
  nodeFile?: string
  key?: ReturnType<typeof createSigningKey>
}

/**
 * Builds bundles in a directory that the test removes. One build takes several seconds, and one installation a second: most
 * tests use createSmallBundles().
 */
export function createTestBundles(t: Teardown, options: BundleOptions = {}): AgentBundles {
  const { dataDir = createDataDir(t), key = createSigningKey(), ...others } = options
  const log = { info: () => undefined, warn: () => undefined }
  const openSigningKey = async () => key
  const bundles = createAgentBundles({ projectRoot: PROJECT_DIR, dataDir, log, openSigningKey, ...others })
  t.teardown(() => bundles.close())
  return bundles
}

/** Bundles of a few megabytes: their Node is a script that runs the Node of the test. */
export function createSmallBundles(t: Teardown, options: Omit<BundleOptions, 'nodeFile'> = {}): AgentBundles {
  const nodeFile = join(createDataDir(t), 'node')
  writeFileSync(nodeFile, `#!/bin/sh\nexec '${process.execPath}' "$@"\n`, { mode: 0o755 })
  return createTestBundles(t, { ...options, nodeFile })
}

export function createDataDir(t: Teardown): string {
  const dir = mkdtempSync(join(tmpdir(), 'boxwood-bundles-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** @param configure adds hooks to the app before it listens */
export async function startBundleServer(
  t: Teardown,
  agentBundles: AgentBundles,
  configure: (app: FastifyInstance) => void = () => undefined,
) {
  const exchanges: Exchange[] = []
  let rejection: Rejection | null = null
  const app = Fastify({ forceCloseConnections: true })
  await registerFileSender(app)
  const config = { agentUrl: null, publicUrl: null }
  const options = { projectRoot: PROJECT_DIR, agentBundles, clock: systemClock, config, urls: { agents: '' } }
  registerPublicRoutes(app, bundleRoutes(options))
  const boxId = newUuid()
  app.post('/agent/enroll', async (request, reply) => {
    exchanges.push(request.body as Exchange)
    if (rejection !== null)
      return reply.status(rejection.status).send({ error: 'unauthorized', message: rejection.message })
    return reply.status(201).send({ boxId, name: 'fig' })
  })
  configure(app)
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  const { port } = app.server.address() as AddressInfo
  return {
    app,
    boxId,
    url: `http://127.0.0.1:${port}`,
    /** The bodies of the requests. */
    exchanges,
    rejectWith(next: Rejection | null) {
      rejection = next
    },
  }
}
export type BundleServer = Awaited<ReturnType<typeof startBundleServer>>
