// Runs the steps of lifecycle jobs against the provider. Every step is idempotent: it may run again after a crash.
import type { Logger } from 'pino'
import type { Region } from '../../../shared/tiers.ts'
import type { Ingest } from '../../agents/tunnel/reports.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'
import type { RunLimited } from '../../base/fair-queue.ts'
import type { BoxRow } from '../../db/schema.ts'
import {
  type ArchiveKey,
  type MachineInfo,
  type MachineSpec,
  type MachineState,
  PermanentProviderError,
  type Provider,
} from '../../providers/provider.ts'
import type { Providers } from '../../providers/regions.ts'
import type { Claim, StepResult } from './claim.ts'
import { collectReports } from './collect-reports.ts'
import { collectSpool } from './collect-spool.ts'
import { parseLeftovers } from './leftovers.ts'
import { findStage } from './transitions.ts'
import { uninstallAgent } from './uninstall-agent.ts'

export type StepContext = {
  providers: Providers
  tunnels: Tunnels
  /** Stores the reports that agents could not send. */
  ingest: Pick<Ingest, 'apply'>
  /** See Module.prepareBox. */
  prepareBox(boxId: string, signal: AbortSignal): Promise<void>
  /** See ImageDownloads. */
  ensureImage(target: { region: Region; image: string | null }, signal: AbortSignal): Promise<void>
  /** See AgentConnections. */
  restartAgent(boxId: string): Promise<boolean>
  coordinatorUrl: string
  /** The job has changed, or the coordinator closes: waiting and copying must end. */
  signal: AbortSignal
  /** Whether boxes may be frozen. */
  freezesBoxes: boolean
  /** How long the agent has left to connect. */
  connectTimeoutMs: number
  /** The agents may be reconnecting to this coordinator until this value of `performance.now()`. */
  reconnectsUntil: number
  /** Limits concurrent provider calls. Waiting for an agent does not count. */
  machineLimit: RunLimited
  /** Limits concurrent copies of files to archives and downloads of images, which take long: starts and stops do not wait for them. */
  archiveLimit: RunLimited
  /** Limits concurrent reads of spools. A box can make its spool large, so that its reports are stored for minutes. */
  spoolLimit: RunLimited
  log: Pick<Logger, 'warn'>
}

export async function runStep(claim: Claim, context: StepContext): Promise<StepResult> {
  const result = await callProvider(claim, context)
  const { desired_region: newRegion } = claim.box
  if (claim.op !== 'move' || newRegion === null) return result
  return { ...result, provider: context.providers.byRegion.get(newRegion)?.name }
}

async function callProvider(claim: Claim, context: StepContext): Promise<StepResult> {
  const { providers, tunnels, signal, connectTimeoutMs, machineLimit, archiveLimit } = context
  const { box } = claim
  const { id } = box
  switch (claim.step) {
    case 'provision': {
      // The provider may have to download the image first.
      const limit = box.image === null ? machineLimit : archiveLimit
      return limit(() => provisionMachine(claim, context))
    }
    case 'start':
      return machineLimit(() => startMachine(claim, context))
    case 'inspect':
      return machineLimit(() => inspectMachine(claim, context))
    case 'connect':
      await tunnels.wait(id, connectTimeoutMs, signal)
      await context.prepareBox(id, signal)
      return claim.op === 'reconnect' ? { reason: 'its agent has reconnected' } : {}
    case 'adjust':
      return machineLimit(() => adjustMachine(claim, context))
    case 'freeze':
      if (!context.freezesBoxes) return {}
      // This waits for an agent that is reconnecting, because the coordinator was killed during the suspend.
      await collectReports(box, context)
      if (!(await isIntact(claim, context))) return {}
      return machineLimit(() => freezeMachine(claim, context))
    case 'stop':
      await collectReports(box, context)
      return machineLimit(() => stopMachine(claim, context))
    case 'archive':
      return archiveLimit(() => archiveMachine(claim, context))
    case 'discard':
      await machineLimit(() => providers.for(box).destroy(id))
      return {}
    case 'relocate':
      return machineLimit(() => relocateMachine(claim, context))
    case 'transfer':
      return archiveLimit(() => transferArchive(claim, context))
    case 'unpack':
      return machineLimit(() => unpackMachine(claim, context))
    case 'clean_up':
      await machineLimit(() => removeLeftovers(claim, context))
      return {}
    case 'collect':
      await collectReports(box, context)
      if (box.kind !== 'machine') await collectSpool(box, claim.attempt, context)
      return {}
    case 'destroy':
      if (box.kind === 'machine') await uninstallAgent(id, context)
      else await machineLimit(() => destroyMachine(claim, context))
      tunnels.disconnect(id, 'the box is deleted')
      return {}
  }
}

const createMachineSpec = (box: BoxRow, coordinatorUrl: string): MachineSpec => ({
  boxId: box.id,
  hostname: box.hostname,
  tier: box.tier,
  coordinatorUrl,
  image: box.image,
})

async function provisionMachine(
  { box, source }: Claim,
  { providers, coordinatorUrl, ensureImage, signal }: StepContext,
): Promise<StepResult> {
  if (source && 'problem' in source) throw new PermanentProviderError(source.problem)
  // The archive of a box has its image.
  if (!source) await ensureImage(box, signal)
  const spec = { ...createMachineSpec(box, coordinatorUrl), source: source?.archive }
  return presentMachine(await providers.for(box).create(spec, signal))
}

const presentMachine = ({ isolation, imageDigest }: MachineInfo): StepResult => ({
  isolation: isolation && JSON.stringify(isolation),
  imageDigest,
})

/** The region of the machine on which the step works. */
export const regionOf = ({ box, op, step }: Pick<Claim, 'box' | 'op' | 'step'>): Region =>
  findStage(op, step).inDesiredRegion ? (box.desired_region ?? box.region) : box.region

/** Failed attempts to continue a frozen machine after which it is restarted. */
const MAX_THAW_ATTEMPTS = 3

async function startMachine(
  { box, op, attempt, agentToken }: Claim,
  { providers, tunnels, coordinatorUrl }: StepContext,
): Promise<StepResult> {
  const provider = providers.inRegion(regionOf({ box, op, step: 'start' }))
  if (agentToken === null) throw new Error('The start step was claimed without a token.')
  // A connection that used the previous token must not become the tunnel of the started machine.
  tunnels.disconnect(box.id, 'the machine is started with a new token')
  const wasFrozen = box.suspended_as === 'frozen'
  const keepsMemory =
    wasFrozen && attempt < MAX_THAW_ATTEMPTS && (await hasProcesses(provider.inspect(box.id)))
  // The agent of the previous attempt did not connect: restart the machine. The machine of a box to recover has stopped already.
  if (attempt > 0 && op !== 'recover' && !keepsMemory) await provider.stop(box.id)
  const machine = await provider.start({ ...createMachineSpec(box, coordinatorUrl), agentToken })
  return {
    ...presentMachine(machine),
    ...(machine.repair !== undefined && { reason: machine.repair }),
    ...(wasFrozen && !keepsMemory && { suspendedAs: 'stopped' }),
  }
}

/** The next steps restart a machine that cannot be resized while it runs. */
async function adjustMachine(
  { box }: Claim,
  { providers, coordinatorUrl, restartAgent, log }: StepContext,
): Promise<StepResult> {
  const provider = providers.for(box)
  if (provider.resize === undefined || (await provider.inspect(box.id)) !== 'running') return {}
  if (!(await provider.resize(createMachineSpec(box, coordinatorUrl)))) return {}
  // The agent reads the size when it starts. It refuses to restart while that would end a terminal session without a host.
  await restartAgent(box.id).catch((err: unknown) =>
    log.warn(
      { err, boxId: box.id },
      'the agent of a resized box was not restarted; it reports the usage of the old size',
    ),
  )
  return { finish: 'running' }
}

async function hasProcesses(inspection: Promise<MachineState>): Promise<boolean> {
  const state = await inspection
  return state === 'frozen' || state === 'running'
}

async function stopMachine({ box, op }: Claim, { providers, tunnels }: StepContext): Promise<StepResult> {
  const provider = providers.for(box)
  await provider.stop(box.id)
  tunnels.disconnect(box.id, 'the box is stopped')
  // The box was being woken from deep sleep.
  const isPacked =
    op === 'suspend' && box.archive_id !== null && (await provider.inspect(box.id)) === 'absent'
  return isPacked ? { finish: 'deep_sleep' } : { suspendedAs: 'stopped' }
}

/** Whether the machine may be frozen. A machine whose agent is not connected is stopped: the next start then repairs it. */
async function isIntact({ box }: Claim, { providers, tunnels }: StepContext): Promise<boolean> {
  if (tunnels.current(box.id) !== undefined || box.suspended_as === 'frozen') return true
  return (await providers.for(box).inspect(box.id)) === 'frozen'
}

/** The next step stops a machine that cannot be frozen. */
async function freezeMachine({ box }: Claim, { providers, tunnels }: StepContext): Promise<StepResult> {
  if (!(await providers.for(box).freeze(box.id))) return {}
  tunnels.disconnect(box.id, 'the box is suspended', { reconnect: 'immediately' })
  return { finish: 'suspended', suspendedAs: 'frozen' }
}

function archiveKeyOf({ workspace_id: workspaceId, archive_id: archiveId }: BoxRow): ArchiveKey {
  if (archiveId === null) throw new Error('The box has no archive.')
  return { workspaceId, archiveId }
}

async function archiveMachine({ box }: Claim, { providers, signal }: StepContext): Promise<StepResult> {
  const { contentBytes } = await providers.for(box).capture(box.id, archiveKeyOf(box), 'all', signal)
  return { archiveBytes: contentBytes }
}

/** The following steps copy the files where the machine cannot be taken over. */
async function relocateMachine({ box }: Claim, { providers }: StepContext): Promise<StepResult> {
  const { id, region, desired_region: newRegion } = box
  if (newRegion === null) throw new Error('The box has no region to move to.')
  // A later step fails when no provider serves the region any more.
  const target = providers.byRegion.get(newRegion)
  if (!(await target?.takeOver?.(id, { provider: providers.for(box), region }))) return {}
  const reason = `moved from ${region} to ${newRegion}, on the same disk: no files were copied`
  return {
    isRelocated: true,
    reason,
    ...(box.desired_state === 'suspended' ? { finish: 'suspended' } : { skipTo: 'start' }),
  }
}

async function transferArchive(
  { box, move }: Claim,
  { providers, signal }: StepContext,
): Promise<StepResult> {
  if (box.desired_region === null) throw new Error('The box has no region to move to.')
  const [source, target] = [providers.for(box), providers.inRegion(box.desired_region)]
  if (source !== target) {
    const content = source.readArchive(archiveKeyOf(box))
    try {
      await target.writeArchive(archiveKeyOf(box), content, signal)
    } finally {
      content.destroy()
    }
  }
  return move.isPacked ? { finish: 'deep_sleep' } : {}
}

/** No-op when the machine exists: the wake interrupted a sleep, or was interrupted. */
async function unpackMachine(
  { box, op }: Claim,
  { providers, coordinatorUrl, signal }: StepContext,
): Promise<StepResult> {
  if (box.archive_id === null) return {}
  const spec = { ...createMachineSpec(box, coordinatorUrl), source: archiveKeyOf(box) }
  const provider = providers.inRegion(regionOf({ box, op, step: 'unpack' }))
  return {
    ...presentMachine(await provider.create(spec, signal)),
    ...(op === 'move' && box.desired_state === 'suspended' && { finish: 'suspended' }),
  }
}

async function removeLeftovers({ box }: Claim, { providers }: StepContext): Promise<void> {
  const current = providers.for(box)
  for (const { region, machine, archiveId } of parseLeftovers(box)) {
    const provider = providers.inRegion(region)
    if (machine && provider !== current) await provider.destroy(box.id)
    if (archiveId !== null) await provider.removeArchive({ workspaceId: box.workspace_id, archiveId })
  }
}

/**
 * Destroys the machine in every region that may have files of the box: an interrupted move may have left some. An engine is asked
 * only about the boxes of its regions, because a deletion must not wait for an engine that is down.
 */
async function destroyMachine({ box }: Claim, { providers }: StepContext): Promise<void> {
  const current = providers.byRegion.get(box.region)
  const leftovers = parseLeftovers(box)
  const archiveIds = [box.archive_id, ...leftovers.map(({ archiveId }) => archiveId)]
  const regions = [box.region, box.desired_region, ...leftovers.map(({ region }) => region)]
  const isUsed = (provider: Provider) =>
    provider.images === undefined ||
    regions.some((region) => region !== null && providers.byRegion.get(region) === provider)
  const used = providers.all.filter(isUsed)
  for (const provider of used) if (provider !== current) await provider.destroy(box.id)
  await current?.destroy(box.id)
  for (const archiveId of archiveIds) {
    if (archiveId === null) continue
    for (const provider of used) await provider.removeArchive({ workspaceId: box.workspace_id, archiveId })
  }
}

/** Never restarts a running machine, connected or not: user processes may be running on it. */
async function inspectMachine({ box }: Claim, { providers, tunnels }: StepContext): Promise<StepResult> {
  const state = await providers.for(box).inspect(box.id)
  if (state === 'absent') throw new Error('The machine of the box does not exist. Delete the box.')
  if (state !== 'running') {
    tunnels.disconnect(box.id, 'the machine does not run')
    const reason = `its machine was ${state}, and has been started`
    return { skipTo: 'start', reason }
  }
  if (!tunnels.current(box.id))
    throw new Error(
      'The machine is running, but its agent is not connected. If this persists, suspend and wake the box.',
    )
  return { skipTo: 'connect', reason: 'its agent has reconnected' }
}
