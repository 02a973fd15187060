// The local provider: a box is an agent in a place of its own on this machine.
import { mkdir, readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Isolation } from '../../../../shared/api/boxes.ts'
import { isUuid } from '../../../../shared/ids.ts'
import { TIERS } from '../../../../shared/tiers.ts'
import { type MachineSpec, type MachineState, PermanentProviderError, type Provider } from '../../provider.ts'
import { makeCgroups, probeCgroups, removeCgroups } from './cgroups.ts'
import { describeChoice, impossible } from './describe.ts'
import { endProcesses } from './end.ts'
import { boxEnvironment } from './environment.ts'
import { chooseUid, makeFolders, removeFolder, sweep } from './folders.ts'
import { findInit, launch } from './launch.ts'
import { ALL_LEVELS, chooseLevel, type Level, levelCommand } from './levels/level.ts'
import {
  type BoxPaths,
  boxPaths,
  type Machine,
  readMachine,
  writeAtomically,
  writeMachine,
} from './machine-file.ts'
import { isAlive } from './proc.ts'
import { buildRuntime, NODE_FLAGS, RUNTIME_FILES } from './runtime.ts'
import { boxView, INSIDE, MAPPED_UID, writeEtc } from './view.ts'

export type LocalProviderOptions = {
  dataDir: string
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void }
  /** `auto` takes the best that works here; a level that is named and does not work is an error. */
  isolation: 'auto' | Level
  /** The project's root, whose agent the boxes run. */
  projectRoot: string
  /** Where the coordinator is now, told to boxes that run since before it was there. An origin. */
  coordinatorUrl: string
  /** Variables of the agents' own configuration. */
  agentSettings?: Readonly<Record<string, string>>
  nodePath?: string
  /** How long processes may take to end by themselves, ms. */
  graceMs?: number
  /** Run by the init in place of the agent: for tests. */
  agentCommand?: string[]
}

/** Throws PermanentProviderError when the level that was asked for does not work here. */
export async function createLocalProvider(options: LocalProviderOptions): Promise<Provider> {
  const { log, isolation, graceMs = 5_000, nodePath = process.execPath, agentSettings = {} } = options
  const dataDir = resolve(options.dataDir)
  const projectRoot = resolve(options.projectRoot)
  const boxesDir = join(dataDir, 'boxes')
  const isRoot = process.getuid?.() === 0
  await mkdir(boxesDir, { recursive: true })
  await sweep(boxesDir)
  const runtimeDir = await buildRuntime(projectRoot, dataDir)
  const candidates = isolation === 'auto' ? ALL_LEVELS : [isolation]
  const choice = await chooseLevel(candidates, { boxesDir, dataDir, projectRoot, runtimeDir, nodePath })
  if (choice.level === null && isolation !== 'auto') throw new PermanentProviderError(impossible(choice))
  const cgroups = await probeCgroups()
  log.info(
    { level: choice.level, limits: cgroups.controllers, refused: choice.refused },
    'local provider ready',
  )

  await tellWhereWeAre()

  const inTurn = perBox()
  const initScriptOf = (level: Level) =>
    level === 'process' ? join(projectRoot, 'agent/init/init.sh') : INSIDE.init

  /** The machine as it is: a box that was started by a coordinator that died at once is found and remembered. */
  async function load(paths: BoxPaths): Promise<Machine | null> {
    const machine = await readMachine(paths)
    if (machine?.level == null) return machine
    const known = machine.init !== null && isAlive(machine.init) ? machine.init : null
    const init = known ?? findInit(paths, initScriptOf(machine.level))
    return { ...machine, init }
  }

  function possibleLevel(): Level {
    if (choice.level === null) throw new PermanentProviderError(impossible(choice))
    return choice.level
  }

  async function prepare(paths: BoxPaths, boxId: string, level: Level): Promise<Machine> {
    const found = await load(paths)
    if (!isRoot && found?.uid != null) {
      throw new PermanentProviderError(
        'this box was made by a coordinator that ran as root: run it as root again, or delete the box',
      )
    }
    const machine = found ?? { boxId, uid: null, level: null, isolation: null, init: null, cgroups: [] }
    const uid = isRoot ? (machine.uid ?? chooseUid(await takenUids())) : null
    await mkdir(paths.dir, { recursive: true })
    // Remembered first: a uid that owns files is never chosen again.
    await writeMachine(paths, { ...machine, uid })
    const levelInForce = machine.init === null ? level : machine.level
    await makeFolders(paths, uid, levelInForce === 'process')
    return { ...machine, uid }
  }

  async function allMachines(): Promise<Machine[]> {
    const ids = (await readdir(boxesDir)).filter(isUuid)
    const machines = await Promise.all(ids.map((id) => readMachine(boxPaths(boxesDir, id))))
    return machines.filter((machine) => machine !== null)
  }

  const takenUids = async (): Promise<Set<number>> =>
    new Set((await allMachines()).flatMap(({ uid }) => uid ?? []))

  /** Boxes run on while no coordinator is there, and the next one may listen elsewhere. */
  async function tellWhereWeAre(): Promise<void> {
    for (const { boxId, uid } of await allMachines()) {
      const { state } = boxPaths(boxesDir, boxId)
      await writeAtomically(join(state, 'url'), options.coordinatorUrl, uid).catch((error: unknown) =>
        log.warn({ box: boxId, err: error }, 'the box could not be told where the coordinator is'),
      )
    }
  }

  async function end(paths: BoxPaths, machine: Machine, grace: number): Promise<Machine> {
    await endProcesses(paths, machine, grace)
    await removeCgroups(machine.cgroups)
    const ended = { ...machine, init: null, cgroups: [] }
    await writeMachine(paths, ended)
    return ended
  }

  async function start(spec: MachineSpec): Promise<{ isolation: Isolation }> {
    const { boxId, hostname, tier } = spec
    const paths = boxPaths(boxesDir, boxId)
    const before = await load(paths)
    if (before === null) throw new PermanentProviderError('this box has no machine: it was never made here')
    if (before.init !== null && before.isolation !== null) {
      await writeMachine(paths, before)
      return { isolation: before.isolation }
    }
    const level = possibleLevel()
    // What a dead init left behind would otherwise live on beside the new box.
    await end(paths, before, 0)
    const prepared = await prepare(paths, boxId, level)
    const { uid } = prepared
    await writeEtc(paths, hostname, uid ?? MAPPED_UID)
    await writeAtomically(join(paths.state, 'url'), spec.coordinatorUrl, uid)
    const inForce: Isolation = { level, limits: cgroups.controllers }
    const planned = cgroups.hierarchies.map(({ parent }) => join(parent, `boxwood-${boxId}`))
    const machine: Machine = { ...prepared, level, isolation: inForce, cgroups: planned }
    // Before the first process and cgroup exist: whatever happens next, the next call knows what to look for.
    await writeMachine(paths, machine)
    const initScript = initScriptOf(level)
    const inside = level !== 'process'
    const agent = inside
      ? [INSIDE.node, ...NODE_FLAGS, INSIDE.agent]
      : [nodePath, ...NODE_FLAGS, join(runtimeDir, RUNTIME_FILES.agent)]
    const command = levelCommand[level]({
      uid,
      hostname,
      mounts: inside ? boxView({ paths, projectRoot, runtimeDir, nodePath, dataDir }) : [],
      scratch: paths.root,
      command: [initScript, ...(options.agentCommand ?? agent)],
    })
    try {
      const init = await launch({
        paths,
        cgroups: makeCgroups(cgroups, boxId, tier),
        command,
        env: boxEnvironment({ spec, paths, inside, tier: TIERS[tier], agentSettings }),
        initScript,
      })
      await writeMachine(paths, { ...machine, init })
      log.info({ box: boxId, pid: init.pid, level }, 'box started')
    } catch (error) {
      await end(paths, machine, 0)
      throw error
    }
    return { isolation: inForce }
  }

  return {
    name: 'local',
    describe: () => describeChoice(choice, cgroups.controllers, isRoot),

    create: (spec) =>
      inTurn(spec.boxId, async () => {
        const paths = boxPaths(boxesDir, spec.boxId)
        const level = possibleLevel()
        const machine = await prepare(paths, spec.boxId, level)
        await writeAtomically(join(paths.state, 'token'), spec.agentToken, machine.uid)
        await writeAtomically(join(paths.state, 'url'), spec.coordinatorUrl, machine.uid)
        return { isolation: machine.isolation ?? { level, limits: cgroups.controllers } }
      }),

    start: (spec) => inTurn(spec.boxId, () => start(spec)),

    stop: (boxId) =>
      inTurn(boxId, async () => {
        const paths = boxPaths(boxesDir, boxId)
        const machine = await load(paths)
        if (machine === null) return
        await end(paths, machine, graceMs)
        log.info({ box: boxId }, 'box stopped')
      }),

    destroy: (boxId) =>
      inTurn(boxId, async () => {
        const paths = boxPaths(boxesDir, boxId)
        const machine = await load(paths)
        if (machine !== null) await end(paths, machine, graceMs)
        await removeFolder(paths.dir)
        if (machine !== null) log.info({ box: boxId }, 'box removed')
      }),

    inspect: (boxId) =>
      inTurn(boxId, async (): Promise<MachineState> => {
        const machine = await load(boxPaths(boxesDir, boxId))
        if (machine === null) return 'absent'
        return machine.init === null ? 'stopped' : 'running'
      }),

    close: () => inTurn.idle(),
  }
}

/** Runs the calls for one box one after the other. */
function perBox() {
  const last = new Map<string, Promise<unknown>>()
  const inTurn = <T>(boxId: string, work: () => Promise<T>): Promise<T> => {
    const turn = (last.get(boxId) ?? Promise.resolve()).then(work, work)
    last.set(boxId, turn)
    const forget = () => {
      if (last.get(boxId) === turn) last.delete(boxId)
    }
    turn.then(forget, forget)
    return turn
  }
  inTurn.idle = async () => {
    await Promise.allSettled(last.values())
  }
  return inTurn
}
