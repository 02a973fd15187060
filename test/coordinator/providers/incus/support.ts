// Helpers for tests of the Incus provider: a server, providers of it, and boxes.
import { chmodSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { readAgentFiles } from '../../../../coordinator/providers/container/agent-files.ts'
import { IncusHost, type IncusHostOptions } from '../../../../coordinator/providers/incus/incus-host.ts'
import { getInstanceName } from '../../../../coordinator/providers/incus/names.ts'
import { createIncusProvider } from '../../../../coordinator/providers/incus/provider.ts'
import type { MachineSpec, Provider } from '../../../../coordinator/providers/provider.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { DEFAULT_REGION } from '../../../../shared/tiers.ts'
import { type Incusd, startIncusd } from '../../../support/engines/incus.ts'
import { PROJECT_DIR } from '../../../support/project.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'

export const DEPLOYMENT = '0123456789abcdef'

type Spec = MachineSpec & { agentToken: string }

export const createSpec = (fields: Partial<Spec> = {}): Spec => ({
  boxId: newUuid(),
  hostname: 'mango',
  tier: 'nano',
  image: 'busybox',
  coordinatorUrl: 'http://127.0.0.1:9',
  agentToken: 'bxt_test',
  ...fields,
})

export type TestServer = Awaited<ReturnType<typeof startServer>>

/** Starts a server for the test. Agents connect to a socket that refuses them. */
export async function startServer(t: Test, options: Parameters<typeof startIncusd>[0] = {}) {
  const incusd: Incusd = await startIncusd(options)
  t.teardown(() => incusd.close())
  const dataDir = createTempDir(t, 'incus')
  chmodSync(dataDir, 0o711)
  const tokens = new Set<string>()
  const socket = createServer((connection) => {
    connection.on('error', () => undefined)
    connection.on('data', (data) => {
      tokens.add(/authorization: Bearer (\S+)/i.exec(String(data))?.[1] ?? '')
      connection.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n')
    })
  })
  const socketPath = join(dataDir, 'agent.sock')
  await new Promise<void>((resolve) => socket.listen(socketPath, resolve))
  chmodSync(socketPath, 0o666)
  t.teardown(() => socket.close())
  const agentFiles = await readAgentFiles({ projectRoot: PROJECT_DIR, dataDir })
  const warnings: string[] = []

  /** Opens a host like a coordinator does. It is closed when the test ends. */
  function openHost(changes: Partial<IncusHostOptions> = {}): IncusHost {
    const host = new IncusHost({
      address: { kind: 'unix', path: incusd.socket },
      deploymentId: DEPLOYMENT,
      agentFiles,
      agentSettings: {},
      agentSocketDir: dataDir,
      coordinatorUrl: 'http://127.0.0.1:9',
      defaultImage: 'busybox',
      pool: null,
      log: {
        debug: () => undefined,
        info: () => undefined,
        warn: (_: object, message?: string) => void warnings.push(message ?? ''),
      } as IncusHostOptions['log'],
      ...changes,
    })
    t.teardown(() => host.close())
    return host
  }

  return {
    ...incusd,
    /** The tokens with which agents have connected. */
    tokens,
    warnings,
    openHost,
    open: (host = openHost(), region = DEFAULT_REGION): Provider => createIncusProvider(host, region, null),
    /** Runs a shell command in a box, and returns its output. */
    run: (boxId: string, command: string): string =>
      incusd.incus(['exec', getInstanceName(boxId), '--', 'sh', '-c', command]),
    /** The content of a file of a box, which need not run. */
    readFile: (boxId: string, path: string): string =>
      incusd.incus(['file', 'pull', `${getInstanceName(boxId)}${path}`, '-']),
    listInstances: (): string[] =>
      incusd.incus(['list', '--format=csv', '--columns=n']).split('\n').filter(Boolean).sort(),
  }
}

/** Waits until the agent of the box has connected with the token. */
export const waitForToken = (server: TestServer, token: string): Promise<boolean> =>
  waitUntil(`an agent connects with ${token}`, () => server.tokens.has(token))

export const countAgents = (server: TestServer, boxId: string): number =>
  server
    .run(boxId, 'ps')
    .split('\n')
    .filter((line) => /node\/node .*agent\.mjs/.test(line) && !line.includes('init.sh')).length
