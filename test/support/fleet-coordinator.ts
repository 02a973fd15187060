// Child process of fleet.ts: runs a coordinator whose provider starts no machines. Sends the parent a Fleet message.
// Arguments: the number of boxes, and {settings} of FleetOptions as JSON. The message 'collect' makes it
// collect garbage, with the option --expose-gc of Node; it responds with 'collected'.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Provider } from '../../coordinator/providers/provider.ts'
import { startCoordinator } from '../../coordinator/server/app.ts'
import { loadConfig } from '../../coordinator/server/config.ts'
import type { Fleet, FleetOptions } from './fleet.ts'
import { withoutArchives } from './without-archives.ts'

/** The longest time of a timer: a box that does not connect is started again, with another token. */
const NEVER_MS = 0x7fff_ffff

const boxCount = Number(process.argv[2])
const { settings = {} }: Pick<FleetOptions, 'settings'> = JSON.parse(process.argv[3] ?? '{}')
const dataDir = await mkdtemp(join(tmpdir(), 'boxwood-fleet-'))
const tokens = new Map<string, string>()

/** Starts no machines; records the agent token of each box. */
const provider: Provider = {
  ...withoutArchives,
  name: 'simulated',
  describe: () => 'simulated machines',
  create: async () => ({ isolation: null }),
  async start({ boxId, agentToken }) {
    tokens.set(boxId, agentToken)
    return { isolation: null }
  },
  stop: async () => undefined,
  destroy: async () => undefined,
  inspect: async () => 'running',
  close: async () => undefined,
}

const config = loadConfig({
  BOXWOOD_DATA: dataDir,
  BOXWOOD_LISTEN: '127.0.0.1:0',
  BOXWOOD_LOG: 'fatal',
  ...settings,
})
const coordinator = await startCoordinator(config, {
  provider,
  lifecycle: { connectTimeoutMs: NEVER_MS },
})
const { owner, context } = coordinator
if (!owner) throw new Error('the coordinator has no owner')
// The start of the coordinator has created the first box.
while ((await context.boxes.list(owner, { live: true })).length < boxCount)
  await context.boxes.create(owner, {})
while (tokens.size < boxCount) await new Promise((resolve) => setTimeout(resolve, 20))
async function stop(): Promise<void> {
  await coordinator.close()
  await rm(dataDir, { recursive: true, force: true })
  process.exit(0)
}
process.once('SIGTERM', stop)
process.on('message', (message) => {
  if (message !== 'collect') return
  globalThis.gc?.()
  process.send?.('collected')
})
// The parent process has exited.
process.once('disconnect', stop)
const fleet: Fleet = {
  url: coordinator.url,
  key: (await readFile(join(dataDir, 'owner.key'), 'utf8')).trim(),
  boxes: [...tokens].map(([boxId, token]) => ({ boxId, token })),
  dataDir,
}
process.send?.(fleet)
