// Runs the steps of lifecycle jobs against the provider. Every step is idempotent: it may run again after a crash.
import type { LimitFunction } from 'p-limit'
import type { Logger } from 'pino'
import type { Tunnels } from '../tunnel/types.ts'
import type { Claim, StepResult } from './claim.ts'
import { collectReports } from './collect-reports.ts'
import type { MachineSpec, Provider } from './provider.ts'
import type { BoxRow } from './store.ts'

export type StepContext = {
  provider: Provider
  tunnels: Tunnels
  coordinatorUrl: string
  /** Aborts waiting for the agent. */
  signal: AbortSignal
  /** How long the agent has left to connect. */
  connectTimeoutMs: number
  /** Limits concurrent provider calls. Waiting for an agent does not count. */
  machineLimit: LimitFunction
  log: Pick<Logger, 'warn'>
}

export async function runStep(claim: Claim, context: StepContext): Promise<StepResult> {
  const { provider, tunnels, signal, connectTimeoutMs, machineLimit } = context
  const { id } = claim.box
  switch (claim.step) {
    case 'provision':
      return machineLimit(() => provisionMachine(claim, context))
    case 'start':
      return machineLimit(() => startMachine(claim, context))
    case 'inspect':
      return machineLimit(() => inspectMachine(claim, context))
    case 'connect':
      await tunnels.wait(id, connectTimeoutMs, signal)
      return {}
    case 'stop':
      await collectReports(id, context)
      await machineLimit(() => provider.stop(id))
      tunnels.disconnect(id, 'the box is suspended')
      return {}
    case 'destroy':
      await collectReports(id, context)
      await machineLimit(() => provider.destroy(id))
      tunnels.disconnect(id, 'the box is deleted')
      return {}
  }
}

const createMachineSpec = (box: BoxRow, coordinatorUrl: string): MachineSpec => ({
  boxId: box.id,
  hostname: box.hostname,
  tier: box.tier,
  coordinatorUrl,
})

async function provisionMachine({ box }: Claim, { provider, coordinatorUrl }: StepContext) {
  const { isolation } = await provider.create(createMachineSpec(box, coordinatorUrl))
  return { isolation: isolation && JSON.stringify(isolation) }
}

async function startMachine(
  { box, attempt, agentToken }: Claim,
  { provider, tunnels, coordinatorUrl }: StepContext,
): Promise<StepResult> {
  if (agentToken === null) throw new Error('The start step was claimed without a token.')
  // A connection that used the previous token must not become the tunnel of the started machine.
  tunnels.disconnect(box.id, 'the machine is started with a new token')
  // The agent of the previous attempt did not connect: restart the machine. No user process runs on it yet.
  if (attempt > 0) await provider.stop(box.id)
  const { isolation } = await provider.start({ ...createMachineSpec(box, coordinatorUrl), agentToken })
  return { isolation: isolation && JSON.stringify(isolation) }
}

/** Never restarts a running machine, connected or not: user processes may be running on it. */
async function inspectMachine({ box }: Claim, { provider, tunnels }: StepContext): Promise<StepResult> {
  const state = await provider.inspect(box.id)
  if (state === 'absent') throw new Error('The machine of the box does not exist. Delete the box.')
  if (state === 'stopped') {
    tunnels.disconnect(box.id, 'the machine has stopped')
    return { skipTo: 'start' }
  }
  if (!tunnels.current(box.id))
    throw new Error(
      'The machine is running, but its agent is not connected. If this persists, suspend and wake the box.',
    )
  return { skipTo: 'connect' }
}
