// An in-memory provider and tunnels that outlive the coordinator under test, with fault injection.
import { EventEmitter } from 'node:events'
import type { MachineState, Provider } from '../../coordinator/lifecycle/provider.ts'
import type { Tunnel, TunnelEvents, Tunnels } from '../../coordinator/tunnel/types.ts'
import { ApiError } from '../../shared/errors.ts'

type ProviderMethod = 'create' | 'start' | 'stop' | 'destroy' | 'inspect'

/** Throws to make the provider call fail, or never resolves to simulate a coordinator killed during the call. */
type Fault = (boxId: string) => void | Promise<void>

/** The machines and tunnels outside the coordinator. */
export class FakeInfrastructure {
  readonly machines = new Map<string, { state: MachineState; token: string }>()
  /** All provider calls so far, as `start <boxId>`. */
  readonly calls: string[] = []
  /** Faults injected before a call takes effect. */
  readonly before: Partial<Record<ProviderMethod, Fault>> = {}
  /** Faults injected after a call has taken effect. */
  readonly after: Partial<Record<ProviderMethod, Fault>> = {}
  /** Whether the agent of a started machine connects. */
  agentsConnect = true
  flushFails = false
  readonly #tunnels = new Map<string, Tunnel>()
  readonly #events = new EventEmitter<TunnelEvents>().setMaxListeners(0)
  #generation = 0

  readonly provider: Provider = {
    name: 'fake',
    describe: () => 'machines in memory',
    create: async ({ boxId }) => {
      await this.#callWithFaults('create', boxId, () => {
        if (!this.machines.has(boxId)) this.machines.set(boxId, { state: 'stopped', token: '' })
      })
      return { isolation: { level: 'process', limits: [], network: 'host' } }
    },
    start: async ({ boxId, agentToken }) => {
      await this.#callWithFaults('start', boxId, () => {
        const machine = this.#getMachine(boxId)
        machine.state = 'running'
        machine.token = agentToken
        if (this.agentsConnect) this.connectAgent(boxId)
      })
      return { isolation: { level: 'process', limits: [], network: 'host' } }
    },
    stop: (boxId) => this.#callWithFaults('stop', boxId, () => this.powerOff(boxId)),
    destroy: (boxId) =>
      this.#callWithFaults('destroy', boxId, () => {
        this.powerOff(boxId)
        this.machines.delete(boxId)
      }),
    inspect: async (boxId) => {
      await this.#callWithFaults('inspect', boxId, () => undefined)
      return this.machines.get(boxId)?.state ?? 'absent'
    },
    close: async () => undefined,
  }

  readonly tunnels: Tunnels = {
    current: (boxId) => this.#tunnels.get(boxId),
    wait: (boxId, ms, signal) => this.#waitForTunnel(boxId, ms, signal),
    on: (event, listener) => void this.#events.on(event, listener as never),
    off: (event, listener) => void this.#events.off(event, listener as never),
    flushReports: async (boxId, ms) => {
      await this.#waitForTunnel(boxId, ms)
      this.calls.push(`flushReports ${boxId}`)
      if (this.flushFails) throw new ApiError('box_unreachable')
    },
    disconnect: (boxId, reason) => this.dropTunnel(boxId, reason),
  }

  /** Stops the machine without the provider, as a reboot of the host does. */
  powerOff(boxId: string): void {
    const machine = this.machines.get(boxId)
    if (machine) machine.state = 'stopped'
    this.dropTunnel(boxId, 'the machine stopped')
  }

  connectAgent(boxId: string): void {
    if (this.#tunnels.has(boxId)) return
    this.#generation += 1
    const tunnel: Tunnel = {
      boxId,
      generation: this.#generation,
      instanceId: `instance-${this.#generation}`,
      agentVersion: '0.0.0',
      request: () => Promise.reject(new ApiError('box_unreachable')),
    }
    this.#tunnels.set(boxId, tunnel)
    this.#events.emit('connected', tunnel)
  }

  dropTunnel(boxId: string, reason = 'dropped'): void {
    if (this.#tunnels.delete(boxId)) this.#events.emit('disconnected', boxId, reason)
  }

  /** The number of calls so far, of all boxes or of one. */
  countCalls(method: ProviderMethod, boxId?: string): number {
    return this.calls.filter((line) =>
      boxId ? line === `${method} ${boxId}` : line.startsWith(`${method} `),
    ).length
  }

  #getMachine(boxId: string) {
    const machine = this.machines.get(boxId)
    if (!machine) throw new Error(`There is no machine for ${boxId}.`)
    return machine
  }

  async #callWithFaults(method: ProviderMethod, boxId: string, effect: () => void): Promise<void> {
    this.calls.push(`${method} ${boxId}`)
    await this.before[method]?.(boxId)
    effect()
    await this.after[method]?.(boxId)
  }

  #waitForTunnel(boxId: string, ms: number, signal?: AbortSignal): Promise<Tunnel> {
    const tunnel = this.#tunnels.get(boxId)
    if (tunnel) return Promise.resolve(tunnel)
    return new Promise((resolve, reject) => {
      const settle = (resolveOrReject: () => void) => {
        clearTimeout(timer)
        this.#events.off('connected', onConnected)
        signal?.removeEventListener('abort', onAbort)
        resolveOrReject()
      }
      const onConnected = (connected: Tunnel) => connected.boxId === boxId && settle(() => resolve(connected))
      const onAbort = () => settle(() => reject(signal?.reason))
      const timer = setTimeout(() => settle(() => reject(new ApiError('box_unreachable'))), ms)
      this.#events.on('connected', onConnected)
      signal?.addEventListener('abort', onAbort)
      if (signal?.aborted) onAbort()
    })
  }
}

/** A fault that fails the first `times` calls. */
export function createFailingFault(times: number, error: Error = new Error('simulated failure')): Fault {
  let remaining = times
  return () => {
    if (remaining-- > 0) throw error
  }
}

/** A fault whose call never returns, as in a killed coordinator. `triggered` resolves when the fault is injected. */
export function createHangingFault(): { fault: Fault; triggered: Promise<void> } {
  const { promise: triggered, resolve } = Promise.withResolvers<void>()
  const fault = () => {
    resolve()
    return new Promise<void>(() => undefined)
  }
  return { fault, triggered }
}
