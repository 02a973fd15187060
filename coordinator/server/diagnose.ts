// Probes isolation, network, limits, the listen address and engines, for `box doctor`. Prints a MachineDiagnosis as one line of JSON.
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ISOLATION_LEVELS } from '../../shared/api/boxes.ts'
import type { MachineDiagnosis } from '../../shared/coordinator-process.ts'
import { ConfigError } from '../base/define-settings.ts'
import { readMemoryState } from '../base/memory-pressure.ts'
import { PROJECT_DIR } from '../base/project-directory.ts'
import { withStoredSettings } from '../base/stored-settings.ts'
import { findPostgresProblem } from '../db/postgres/open.ts'
import { type Address, formatAuthority, listen } from '../http/listen.ts'
import { describeEngine, formatStartLine } from '../providers/describe-engines.ts'
import { probeCgroups } from '../providers/local/cgroups.ts'
import { hasReflinks } from '../providers/local/clone-machine.ts'
import {
  adviseOwnNetwork,
  adviseStrongerLevel,
  describeFailure,
} from '../providers/local/describe-isolation.ts'
import { removeTree } from '../providers/local/directories.ts'
import { chooseLevel, type LevelChoice } from '../providers/local/levels/choose-level.ts'
import { listOccupiedRegions } from '../providers/local/region-directories.ts'
import { findWarmProblem } from '../providers/local/warm-machine.ts'
import { buildRuntime } from '../providers/parts/runtime.ts'
import { probeEngines } from '../providers/probe-engines.ts'
import { chooseWarmSize, describeWarmSize } from '../warm-machines/choose-size.ts'
import { getStartCommand } from './box-command.ts'
import { type Config, loadConfig } from './config.ts'

const EXIT_BAD_CONFIG = 2

async function diagnose(config: Config): Promise<MachineDiagnosis> {
  const { databaseUrl } = config
  const options = {
    regions: config.regions,
    occupiedRegions: listOccupiedRegions(config.dataDir),
    startCommand: getStartCommand(),
  }
  const [choice, { controllers }, addressProblem, databaseProblem, engines, reflinks] = await Promise.all([
    probeLevels(config),
    probeCgroups(),
    findAddressProblem(config.listen),
    databaseUrl === null ? null : findPostgresProblem(databaseUrl),
    probeEngines({ config, env: process.env }),
    probeReflinks(config.dataDir),
  ])
  return {
    level: choice.level,
    levelAdvice: choice.level === null ? describeFailure(choice) : adviseStrongerLevel(choice),
    network: choice.network,
    networkAdvice: adviseOwnNetwork(choice),
    limits: controllers,
    address: `${config.listen.host}:${config.listen.port}`,
    url: `http://${formatAuthority(config.listen.host, config.listen.port)}`,
    addressProblem,
    database: databaseUrl === null ? null : { problem: databaseProblem },
    engines: engines.map((report) => describeEngine(report, options)),
    hasReflinks: reflinks,
    warmMachines: await describeWarmMachines(config, choice),
    dockerStartLine: formatStartLine('docker', options),
  }
}

/** Runs probe boxes in a temporary directory: a coordinator may be using the data directory. */
async function probeLevels({ dataDir, isolation, network, agentUrl }: Config): Promise<LevelChoice> {
  const dir = await mkdtemp(join(existsSync(dataDir) ? dataDir : tmpdir(), '.doctor-'))
  try {
    // Boxes with their own user id enter the directory.
    await chmod(dir, 0o711)
    const boxesDir = join(dir, 'boxes')
    await mkdir(boxesDir)
    return await chooseLevel(isolation === 'auto' ? ISOLATION_LEVELS : [isolation], {
      boxesDir,
      dataDir: dir,
      projectRoot: PROJECT_DIR,
      runtimeDir: await buildRuntime(PROJECT_DIR, dir),
      nodePath: process.execPath,
      network: network === 'auto' && agentUrl !== null ? 'host' : network,
      onSlow: (message) => process.stderr.write(`${message}\n`),
    })
  } finally {
    await removeTree(dir)
  }
}

/** null: there is nothing to say, as where no region has local boxes. */
async function describeWarmMachines({ regions, warm }: Config, choice: LevelChoice): Promise<string | null> {
  const hasLocalBoxes = [...regions.values()].some(({ kind }) => kind === 'local')
  const offer = hasLocalBoxes ? { problem: findWarmProblem(choice) } : undefined
  return describeWarmSize(chooseWarmSize(warm, offer, await readMemoryState()))
}

/** A data directory that does not exist yet gets the file system of the directory above it, which may not be writable. */
async function probeReflinks(dataDir: string): Promise<boolean | null> {
  let dir = dataDir
  while (!existsSync(dir)) dir = dirname(dir)
  return hasReflinks(dir).catch(() => null)
}

async function findAddressProblem(address: Address): Promise<string | null> {
  try {
    const { server } = await listen(address)
    server.close()
    return null
  } catch (error) {
    return (error as Error).message
  }
}

try {
  process.stdout.write(`${JSON.stringify(await diagnose(loadConfig(withStoredSettings(process.env))))}\n`)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = error instanceof ConfigError ? EXIT_BAD_CONFIG : 1
}
