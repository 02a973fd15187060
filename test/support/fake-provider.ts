// Machines and tunnels in memory, that outlive coordinators and fail on demand.
import { EventEmitter } from 'node:events'
import type { MachineState, Provider } from '../../coordinator/lifecycle/provider.ts'
import type { Tunnel, TunnelEvents, Tunnels } from '../../coordinator/tunnel/types.ts'
import { ApiError } from '../../shared/errors.ts'

type Call = 'create' | 'start' | 'stop' | 'destroy' | 'inspect'

/** Throws to make the call fail; never settles to be a coordinator that dies in there. */
type Fault = (boxId: string) => void | Promise<void>

/** The world outside the coordinator. */
export class FakeWorld {
  readonly machines = new Map<string, { state: MachineState; token: string }>()
  /** Every call that was made, as `start <boxId>`. */
  readonly calls: string[] = []
  /** Run before the call has its effect, and after. */
  readonly before: Partial<Record<Call, Fault>> = {}
  readonly after: Partial<Record<Call, Fault>> = {}
  /** Whether the agent of a started machine connects. */
  agentsConnect = true
  readonly #tunnels = new Map<string, Tunnel>()
  readonly #events = new EventEmitter<TunnelEvents>().setMaxListeners(0)
  #generation = 0

  readonly provider: Provider = {
    name: 'fake',
    describe: () => 'machines in memory',
    create: async ({ boxId, agentToken }) => {
      await this.#call('create', boxId, () => {
        const state = this.machines.get(boxId)?.state ?? 'stopped'
        this.machines.set(boxId, { state, token: agentToken })
      })
      return { isolation: { level: 'process', limits: [] } }
    },
    start: async ({ boxId }) => {
      await this.#call('start', boxId, () => {
        this.#machine(boxId).state = 'running'
        if (this.agentsConnect) this.connect(boxId)
      })
      return { isolation: { level: 'process', limits: [] } }
    },
    stop: (boxId) => this.#call('stop', boxId, () => this.powerOff(boxId)),
    destroy: (boxId) =>
      this.#call('destroy', boxId, () => {
        this.powerOff(boxId)
        this.machines.delete(boxId)
      }),
    inspect: async (boxId) => {
      await this.#call('inspect', boxId, () => undefined)
      return this.machines.get(boxId)?.state ?? 'absent'
    },
    close: async () => undefined,
  }

  readonly tunnels: Tunnels = {
    current: (boxId) => this.#tunnels.get(boxId),
    wait: (boxId, ms, signal) => this.#wait(boxId, ms, signal),
    on: (event, listener) => void this.#events.on(event, listener as never),
    off: (event, listener) => void this.#events.off(event, listener as never),
    disconnect: (boxId, reason) => this.cut(boxId, reason),
  }

  /** The machine stops by itself, as in a reboot of the host. */
  powerOff(boxId: string): void {
    const machine = this.machines.get(boxId)
    if (machine) machine.state = 'stopped'
    this.cut(boxId, 'the machine stopped')
  }

  connect(boxId: string): void {
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

  cut(boxId: string, reason = 'cut'): void {
    if (this.#tunnels.delete(boxId)) this.#events.emit('disconnected', boxId, reason)
  }

  /** How often a call was made. */
  count(call: Call, boxId?: string): number {
    return this.calls.filter((line) => (boxId ? line === `${call} ${boxId}` : line.startsWith(`${call} `)))
      .length
  }

  #machine(boxId: string) {
    const machine = this.machines.get(boxId)
    if (!machine) throw new Error(`There is no machine for ${boxId}.`)
    return machine
  }

  async #call(call: Call, boxId: string, effect: () => void): Promise<void> {
    this.calls.push(`${call} ${boxId}`)
    await this.before[call]?.(boxId)
    effect()
    await this.after[call]?.(boxId)
  }

  #wait(boxId: string, ms: number, signal?: AbortSignal): Promise<Tunnel> {
    const now = this.#tunnels.get(boxId)
    if (now) return Promise.resolve(now)
    return new Promise((resolve, reject) => {
      const settle = (then: () => void) => {
        clearTimeout(timer)
        this.#events.off('connected', onConnected)
        signal?.removeEventListener('abort', onAbort)
        then()
      }
      const onConnected = (tunnel: Tunnel) => tunnel.boxId === boxId && settle(() => resolve(tunnel))
      const onAbort = () => settle(() => reject(signal?.reason))
      const timer = setTimeout(() => settle(() => reject(new ApiError('box_unreachable'))), ms)
      this.#events.on('connected', onConnected)
      signal?.addEventListener('abort', onAbort)
      if (signal?.aborted) onAbort()
    })
  }
}

/** A fault that fails the first `times` calls. */
export function failing(times: number, error: Error = new Error('no luck')): Fault {
  let left = times
  return () => {
    if (left-- > 0) throw error
  }
}

/** A fault in which the coordinator dies: the call never comes back. `reached` resolves when it is there. */
export function dying(): { fault: Fault; reached: Promise<void> } {
  const { promise: reached, resolve } = Promise.withResolvers<void>()
  const fault = () => {
    resolve()
    return new Promise<void>(() => undefined)
  }
  return { fault, reached }
}
