// Boxes of the local provider for tests: one level at a time, with a shell script in place of the agent.
import { existsSync } from 'node:fs'
import { chmod, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import type { MachineSpec } from '../../../../coordinator/lifecycle/provider.ts'
import {
  ALL_LEVELS,
  chooseLevel,
  type Level,
} from '../../../../coordinator/lifecycle/providers/local/levels/level.ts'
import { boxPaths } from '../../../../coordinator/lifecycle/providers/local/machine-file.ts'
import {
  createLocalProvider,
  type LocalProviderOptions,
} from '../../../../coordinator/lifecycle/providers/local/provider.ts'
import { buildRuntime } from '../../../../coordinator/lifecycle/providers/local/runtime.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

export const projectRoot = fileURLToPath(new URL('../../../..', import.meta.url))
export const isRoot = process.getuid?.() === 0

const DEADLINE_MS = 15_000

export async function makeDataDir(test: Test): Promise<string> {
  const dir = tempFolder(test, 'local')
  // A plain process of a uid of its own walks through it.
  await chmod(dir, 0o711)
  return dir
}

/** A subtest for each level that this machine can do; the others are skipped with the reason. */
export function eachLevel(levels: readonly Level[], body: (test: Test, level: Level) => Promise<void>): void {
  for (const level of levels) {
    t.test(level, async (test) => {
      const dataDir = await makeDataDir(test)
      const runtimeDir = await buildRuntime(projectRoot, dataDir)
      const probe = { boxesDir: dataDir, dataDir, projectRoot, runtimeDir, nodePath: process.execPath }
      const { refused } = await chooseLevel([level], probe)
      if (refused[0] === undefined) await body(test, level)
      else test.pass('is possible here', { skip: refused[0].reason })
    })
  }
}

export { ALL_LEVELS }

export type Options = Partial<LocalProviderOptions> & { level: Level; script?: string }

export function openProvider(dataDir: string, { level, script = '', ...rest }: Options) {
  return createLocalProvider({
    dataDir,
    isolation: level,
    projectRoot,
    coordinatorUrl: 'http://127.0.0.1:9',
    graceMs: 500,
    log: { info: () => {}, warn: () => {} },
    agentCommand: ['sh', '-c', `${script}\nexec sleep 600`],
    ...rest,
  })
}

export const newSpec = (): MachineSpec => ({
  boxId: newUuid(),
  hostname: 'mango',
  tier: 'nano',
  coordinatorUrl: 'http://127.0.0.1:9',
})

/** A started box whose agent is `script`; it is destroyed when the test ends. */
export async function startBox(test: Test, options: Options & { dataDir?: string }) {
  const { dataDir = await makeDataDir(test), ...rest } = options
  const provider = await openProvider(dataDir, rest)
  const spec = newSpec()
  test.teardown(async () => {
    await provider.destroy(spec.boxId)
    await provider.close()
  })
  await provider.create({ ...spec, agentToken: 'bxt_test' })
  const { isolation } = await provider.start(spec)
  const paths = boxPaths(join(dataDir, 'boxes'), spec.boxId)
  return { provider, spec, dataDir, paths, isolation, inHome: (name: string) => join(paths.home, name) }
}

/** Waits for a file that a script completed by `mv`, and answers its text. */
export async function readWhenThere(path: string): Promise<string> {
  await until(() => existsSync(path), `${path} is there`)
  return await readFile(path, 'utf8')
}

export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${DEADLINE_MS} ms: ${what}`)
    await sleep(20)
  }
}
