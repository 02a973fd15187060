// Helpers for tests of the local provider: boxes at a given isolation level, with a shell script as their agent.
import { existsSync } from 'node:fs'
import { chmod, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { type LocalHostOptions, openLocalHost } from '../../../../coordinator/providers/local/host.ts'
import type { Level, LevelChoice } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { boxPaths } from '../../../../coordinator/providers/local/machine-file.ts'
import { createLocalProvider } from '../../../../coordinator/providers/local/provider.ts'
import type { MachineSpec, Provider } from '../../../../coordinator/providers/provider.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { DEFAULT_REGION } from '../../../../shared/tiers.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'

export const projectRoot = fileURLToPath(new URL('../../../..', import.meta.url))
export const isRoot = process.getuid?.() === 0

export async function createDataDir(test: Test): Promise<string> {
  const dir = createTempDir(test, 'local')
  // At level process a box user needs search permission here, to access the directories of its box.
  await chmod(dir, 0o711)
  return dir
}

/** Nothing listens at this URL. */
const UNREACHABLE_URL = 'http://127.0.0.1:9'

/** `runProbes`: also when a host of this level was opened before. */
export type TestProviderOptions = Partial<LocalHostOptions> & {
  level: Level
  script?: string
  runProbes?: boolean
}

/** Of each level on the host's network: the probes take most of the time of opening a host. */
const choices = new Map<Level, LevelChoice>()

export async function openHost(
  dataDir: string,
  { level, script = '', runProbes = false, ...rest }: TestProviderOptions,
) {
  const isDefault = !runProbes && [rest.nodePath, rest.network, rest.isolation].every((value) => !value)
  const known = isDefault ? choices.get(level) : undefined
  const host = await openLocalHost({
    dataDir,
    ...(known === undefined ? {} : { choice: known }),
    isolation: level,
    projectRoot,
    coordinatorUrl: UNREACHABLE_URL,
    graceMs: 500,
    log: { debug: () => {}, info: () => {}, warn: () => {} },
    agentCommand: ['sh', '-c', `${script}\nexec sleep 600`],
    ...rest,
  })
  if (isDefault) choices.set(level, host.choice)
  return host
}

/** The provider of the default region, which closes its host. */
export async function openProvider(dataDir: string, options: TestProviderOptions): Promise<Provider> {
  const host = await openHost(dataDir, options)
  const provider = await createLocalProvider(host, DEFAULT_REGION)
  return {
    ...provider,
    async close() {
      await Promise.all([provider.close(), host.close()])
    },
  }
}

export const createMachineSpec = (): MachineSpec & { agentToken: string } => ({
  boxId: newUuid(),
  hostname: 'mango',
  tier: 'nano',
  image: null,
  coordinatorUrl: UNREACHABLE_URL,
  agentToken: 'bxt_test',
})

/** Starts a box whose agent is `script`. The box is destroyed when the test ends. */
export async function startBox(test: Test, options: TestProviderOptions & { dataDir?: string }) {
  const { dataDir = await createDataDir(test), ...rest } = options
  const provider = await openProvider(dataDir, rest)
  const spec = createMachineSpec()
  test.teardown(async () => {
    await provider.destroy(spec.boxId)
    await provider.close()
  })
  await provider.create(spec)
  const { isolation } = await provider.start(spec)
  const paths = boxPaths(join(dataDir, 'boxes'), spec.boxId)
  return { provider, spec, dataDir, paths, isolation, inHome: (name: string) => join(paths.home, name) }
}

/** Waits until the file exists and returns its text. Scripts create the file with `mv`, so that its text is complete. */
export async function waitForFileText(path: string): Promise<string> {
  await waitUntil(`${path} exists`, () => existsSync(path))
  return await readFile(path, 'utf8')
}
