// What each step does to the machine. Every one may run again after a crash: it ends where it would have anyway.
import type { Tunnels } from '../tunnel/types.ts'
import type { Claim, StepResult } from './claim.ts'
import type { MachineSpec, Provider } from './provider.ts'
import type { BoxRow } from './store.ts'

export type StepContext = {
  provider: Provider
  tunnels: Tunnels
  coordinatorUrl: string
  /** Ends waiting for the agent. */
  signal: AbortSignal
  /** How long the agent has left to connect. */
  connectMs: number
  /** Takes one of the places for work on machines: waiting for an agent needs none. */
  onMachine<T>(work: () => Promise<T>): Promise<T>
  /** Waits, not for long, for what the agent still has to tell: before its machine ends. */
  settled(boxId: string): Promise<void>
}

export function runStep(claim: Claim, context: StepContext): Promise<StepResult> {
  const { tunnels, signal, connectMs, onMachine } = context
  const { id } = claim.box
  switch (claim.step) {
    case 'provision':
      return onMachine(() => provision(claim, context))
    case 'start':
      return onMachine(() => start(claim, context))
    case 'inspect':
      return onMachine(() => inspect(claim, context))
    case 'connect':
      return tunnels.wait(id, connectMs, signal).then(() => ({}))
    case 'stop':
      return context
        .settled(id)
        .then(() => onMachine(() => context.provider.stop(id)))
        .then(() => cutOff(tunnels, id, 'the box is suspended'))
    case 'destroy':
      return context
        .settled(id)
        .then(() => onMachine(() => context.provider.destroy(id)))
        .then(() => cutOff(tunnels, id, 'the box is deleted'))
  }
}

export const machineSpec = (box: BoxRow, coordinatorUrl: string): MachineSpec => ({
  boxId: box.id,
  hostname: box.hostname,
  tier: box.tier,
  coordinatorUrl,
})

async function provision({ box, agentToken }: Claim, { provider, coordinatorUrl }: StepContext) {
  if (agentToken === null) throw new Error('The provision step was claimed without a token.')
  const { isolation } = await provider.create({ ...machineSpec(box, coordinatorUrl), agentToken })
  return { isolation: isolation && JSON.stringify(isolation) }
}

async function start(
  { box, attempt }: Claim,
  { provider, coordinatorUrl }: StepContext,
): Promise<StepResult> {
  // A machine that was started and did not help is started afresh; nobody's work runs on it yet.
  if (attempt > 0) await provider.stop(box.id)
  const { isolation } = await provider.start(machineSpec(box, coordinatorUrl))
  return { isolation: isolation && JSON.stringify(isolation) }
}

/** A machine that runs is left alone, connected or not: somebody's work may be going on in there. */
async function inspect({ box }: Claim, { provider, tunnels }: StepContext): Promise<StepResult> {
  const state = await provider.inspect(box.id)
  if (state === 'absent') throw new Error('The machine is gone.')
  if (state === 'stopped') {
    tunnels.disconnect(box.id, 'the machine has stopped')
    return { goTo: 'start' }
  }
  if (!tunnels.current(box.id)) throw new Error('The machine runs, but its agent does not connect.')
  return { goTo: 'connect' }
}

function cutOff(tunnels: Tunnels, boxId: string, reason: string): StepResult {
  tunnels.disconnect(boxId, reason)
  return {}
}
