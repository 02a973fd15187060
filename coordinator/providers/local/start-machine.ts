// Starts a machine: continues one that runs or is frozen, else launches its init.
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Isolation } from '../../../shared/api/boxes.ts'
import { STANDBY_FILES } from '../../../shared/standby-files.ts'
import { boundTier } from '../../../shared/tiers.ts'
import { linkCompileCache } from '../../agents/bundles/compile-cache.ts'
import { NODE_FLAGS } from '../../agents/bundles/node-flags.ts'
import { RUNTIME_FILES } from '../parts/runtime.ts'
import { writeAtomically } from '../parts/write-atomically.ts'
import { type MachineSpec, PermanentProviderError } from '../provider.ts'
import { createCgroups, listBoxCgroupDirs } from './cgroups.ts'
import { buildConfinement } from './confinement.ts'
import { chooseUrl, seesSocket, writeConnectionFiles } from './connection-files.ts'
import { createBoxEnvironment } from './environment.ts'
import {
  buildMountList,
  getRuntimeDirInBox,
  MAPPED_UID,
  VIEW_PATHS,
  writeEtcFiles,
  writeHostnameFiles,
} from './filesystem-view.ts'
import type { LocalHost } from './host.ts'
import { setHostname } from './hostname.ts'
import { isWeakerLevel } from './isolation-record.ts'
import { launchBox } from './launch.ts'
import { buildBoxCommand, type Level } from './levels/choose-level.ts'
import {
  type BoxPaths,
  boxPaths,
  type LocalIsolation,
  type Machine,
  readMachine,
  WARM_STATES,
  writeMachine,
} from './machine-file.ts'
import { prepareMachine, type RegionMachines, requireIsolation } from './prepare-machine.ts'

type StartSpec = MachineSpec & { agentToken: string }
/** agentToken: null: the agent waits for the variables of its box, and does not connect before. */
type LaunchSpec = MachineSpec & { agentToken: string | null }

export async function startMachine(
  region: RegionMachines,
  spec: StartSpec,
): Promise<{ isolation: Isolation }> {
  const machine = await region.machines.load(spec.boxId)
  if (machine === null)
    throw new PermanentProviderError('The machine of the box does not exist. Delete the box.')
  if (machine.init === null || machine.isolation === null)
    return { isolation: await launchMachine(region, machine, spec) }
  const { isolation } = machine
  if (machine.warm === undefined) await continueMachine(region, machine, spec)
  else await claimWarmMachine(region, { ...machine, isolation }, spec)
  return { isolation }
}

async function continueMachine(
  { host, boxesDir, machines }: RegionMachines,
  machine: Machine,
  { boxId, coordinatorUrl, agentToken: token }: StartSpec,
): Promise<void> {
  const paths = boxPaths(boxesDir, boxId)
  // load() may have found an unrecorded init. A durable write would double the time of a thaw.
  if (!isDeepStrictEqual(await readMachine(paths).catch(() => null), machine))
    await writeMachine(paths, machine)
  const url = chooseUrl(host, machine, coordinatorUrl)
  await writeConnectionFiles(paths, { url, token }, machine.uid)
  // The agent of a frozen machine reads the files when it reconnects.
  machines.thaw(machine)
}

/** Starts a machine whose agent waits: startMachine() makes it that of a box, without the time that a start takes. */
export const launchWarmMachine = (
  region: RegionMachines,
  machine: Machine,
  spec: Omit<MachineSpec, 'image'>,
): Promise<Isolation> => launchMachine(region, machine, { ...spec, image: null, agentToken: null })

/** The box runs no command before the call ends. A call that was interrupted is repeated. */
async function claimWarmMachine(
  region: RegionMachines,
  { warm: _, ...machine }: Machine & { isolation: LocalIsolation },
  spec: StartSpec,
): Promise<void> {
  const { host, boxesDir } = region
  const { boxId, hostname, tier, agentToken: token } = spec
  const paths = boxPaths(boxesDir, boxId)
  createCgroups(host.cgroups, boxId, tier)
  await writeHostnameFiles(paths, hostname)
  const url = chooseUrl(host, machine, spec.coordinatorUrl)
  await writeConnectionFiles(paths, { url, token }, machine.uid)
  // The init has extended the PATH of the agent.
  const { PATH: _path, ...variables } = buildEnvironment(region, machine, { ...spec, coordinatorUrl: url })
  const file = join(paths.state, STANDBY_FILES.variables)
  // The agent starts with the variables, which takes longer than the change of the hostname.
  await Promise.all([
    setHostname(paths, machine, hostname),
    writeAtomically(file, JSON.stringify(variables), { owner: machine.uid }),
  ])
  await writeMachine(paths, machine)
}

async function launchMachine(
  region: RegionMachines,
  existing: Machine,
  spec: LaunchSpec,
): Promise<Isolation> {
  const { host, boxesDir, machines } = region
  const { boxId, hostname, tier, agentToken: token } = spec
  const paths = boxPaths(boxesDir, boxId)
  const isolation = requireIsolation(host)
  const { level, network } = isolation
  assertSameWall(existing, level)
  await machines.stopRemaining(paths, existing)
  const prepared = await prepareMachine(region, boxId, level)
  const { uid } = prepared
  const hasSocket = seesSocket(host, level)
  const coordinatorUrl = chooseUrl(host, { level, hasSocket }, spec.coordinatorUrl)
  await writeEtcFiles(paths, hostname, uid ?? MAPPED_UID, network)
  await writeConnectionFiles(paths, { url: coordinatorUrl, token }, uid)
  const cgroupDirs = listBoxCgroupDirs(host.cgroups, boxId)
  const { warm: _, ...cold } = prepared
  const machine = {
    ...cold,
    ...(token === null && { warm: WARM_STATES.starting }),
    ...{ level, isolation, hasSocket, cgroups: cgroupDirs },
  }
  // Record the level and cgroups before they are in use, so that after a crash the next call can find the processes.
  await writeMachine(paths, machine)
  const runtimeDir = await host.getRuntimeDir()
  await linkCompileCache(runtimeDir, uid ?? MAPPED_UID)
  const initScript = machines.initScriptOf(level)
  const environment = {
    ...buildEnvironment(region, machine, { ...spec, coordinatorUrl }),
    ...(token === null && { BOXWOOD_STANDBY: '1' }),
  }
  const command = buildCommand(host, { isolation, uid, hostname, paths, runtimeDir, initScript })
  try {
    const cgroups = createCgroups(host.cgroups, boxId, tier)
    const init = await launchBox({ paths, cgroups, command, env: environment, initScript })
    await writeMachine(paths, { ...machine, init })
    host.options.log.debug({ boxId, initPid: init.pid, isolationLevel: level }, 'machine started')
  } catch (error) {
    await machines.stop(paths, machine, 0)
    throw error
  }
  return isolation
}

function buildEnvironment(
  { host, boxesDir, capacity }: RegionMachines,
  { uid, isolation, cgroups }: Machine & { isolation: LocalIsolation },
  spec: MachineSpec,
): Record<string, string> {
  const { level, network, limits } = isolation
  return createBoxEnvironment({
    spec,
    paths: boxPaths(boxesDir, spec.boxId),
    isNamespaced: level !== 'process',
    hasOwnUid: uid !== null,
    network,
    runtimeDir: getRuntimeDirInBox(level, host.runtimePaths.current),
    size: boundTier(spec.tier, capacity),
    cgroupDirs: cgroups,
    isCpuLimited: limits.includes('cpu'),
    agentSettings: host.options.agentSettings ?? {},
  })
}

/** A box is never started at a weaker level than before, whatever the operator accepts for new boxes. */
function assertSameWall({ level: earlier }: Machine, level: Level): void {
  if (earlier === null || !isWeakerLevel(level, earlier)) return
  throw new PermanentProviderError(
    `The box was created at isolation level ${earlier}, and the coordinator starts boxes at level ${level} only. Restart the coordinator with level ${earlier}, or fork the box.`,
  )
}

type CommandInput = {
  isolation: LocalIsolation
  uid: number | null
  hostname: string
  paths: BoxPaths
  runtimeDir: string
  initScript: string
}

/** The command line that isolates the box and runs its init, which runs the agent. */
function buildCommand(host: LocalHost, input: CommandInput): string[] {
  const { isolation, uid, hostname, paths, runtimeDir, initScript } = input
  const { level, network } = isolation
  const { dataDir, projectRoot, nodePath, socketDir = null } = host.options
  const isNamespaced = level !== 'process'
  const mounts = isNamespaced
    ? buildMountList({
        paths,
        projectRoot,
        runtimeDir,
        nodePath,
        dataDir,
        socketDir,
      })
    : []
  const agentCommand = host.options.agentCommand ?? [
    isNamespaced ? VIEW_PATHS.node : host.runtimePaths.node,
    ...NODE_FLAGS,
    isNamespaced ? VIEW_PATHS.agent : join(host.runtimePaths.current, RUNTIME_FILES.agent),
  ]
  const shellArgs = [initScript, ...agentCommand]
  const confinement = buildConfinement(host.choice.confinement, level, host.runtimePaths.current)
  const rootDir = paths.root
  return buildBoxCommand(
    level,
    network,
    { uid, hostname, mounts, rootDir, confinement, shellArgs },
    paths.dir,
  )
}
