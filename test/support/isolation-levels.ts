// Which isolation levels of local boxes work on this machine.
import { chmodSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chooseLevel, type Level } from '../../coordinator/providers/local/levels/choose-level.ts'
import { buildRuntime } from '../../coordinator/providers/local/runtime.ts'
import { ISOLATION_LEVELS } from '../../shared/api/boxes.ts'
import { PROJECT_DIR } from './project.ts'
import { requires } from './requires.ts'

const problems = new Map<Level, Promise<string | false>>()

/** Each level, and why a test that needs it is skipped: the option `skip` of the test. */
export const availableLevels = (): Promise<{ level: Level; skip: string | false }[]> =>
  Promise.all(ISOLATION_LEVELS.map(async (level) => ({ level, skip: await findLevelProblem(level) })))

/** Why the level does not work on this machine, with the network of the host. Runs a probe once per process. */
export function findLevelProblem(level: Level): Promise<string | false> {
  const known = problems.get(level)
  if (known !== undefined) return known
  const missing = level === 'bubblewrap' && requires('bwrap')
  const problem = missing === false ? probe(level) : Promise.resolve(missing)
  problems.set(level, problem)
  return problem
}

async function probe(level: Level): Promise<string | false> {
  const dataDir = mkdtempSync(join(tmpdir(), 'bw-levels-'))
  // At level process a box user needs search permission here.
  chmodSync(dataDir, 0o711)
  try {
    const { unavailable } = await chooseLevel([level], {
      boxesDir: dataDir,
      dataDir,
      projectRoot: PROJECT_DIR,
      runtimeDir: await buildRuntime(PROJECT_DIR, dataDir),
      nodePath: process.execPath,
      network: 'host',
    })
    return unavailable[0]?.reason ?? false
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}
