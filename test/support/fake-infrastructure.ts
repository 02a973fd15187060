// An in-memory provider and tunnels that outlive the coordinator under test, with fault injection.
import { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type {
  Tunnel,
  TunnelCallResponse,
  TunnelEvents,
  Tunnels,
} from '../../coordinator/agents/tunnel/types.ts'
import { unlessAborted } from '../../coordinator/base/unless-aborted.ts'
import {
  ArchiveError,
  type ArchiveInfo,
  type ArchiveKey,
  type MachineState,
  type Provider,
} from '../../coordinator/providers/provider.ts'
import type { CloudCredentials } from '../../shared/api/cloud-credentials.ts'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import { PROTOCOL_VERSION } from '../../shared/protocol.ts'
import type { Region } from '../../shared/tiers.ts'

type ProviderMethod =
  | 'create'
  | 'start'
  | 'stop'
  | 'destroy'
  | 'inspect'
  | 'freeze'
  | 'resize'
  | 'takeOver'
  | 'capture'
  | 'copyFiles'
  | 'removeArchive'
  | 'removeArchives'
  | 'readArchive'
  | 'writeArchive'

type FakeMachine = {
  state: MachineState
  token: string
  /** Stands for the content of the files. */
  files: string
}

/** Throws to make the provider call fail, or never resolves to simulate a coordinator killed during the call. */
type Fault = (boxId: string) => void | Promise<void>

let nextGeneration = 1

/** An agent that is not connected by then is never connected: tests need not wait for it as long as a coordinator. */
const RECONNECT_MS = 300

/** The machines and tunnels outside the coordinator. */
export class FakeInfrastructure {
  readonly machines = new Map<string, FakeMachine>()
  /** The content of the archives, by archive id. */
  readonly archives = new Map<string, string>()
  /** All provider calls so far, as `start <boxId>`. */
  readonly calls: string[] = []
  /** Faults injected before a call takes effect. */
  readonly before: Partial<Record<ProviderMethod, Fault>> = {}
  /** Faults injected after a call has taken effect. */
  readonly after: Partial<Record<ProviderMethod, Fault>> = {}
  /** Whether the agent of a started machine connects. */
  agentsConnect = true
  /** Whether machines can be frozen. */
  canFreeze = false
  flushFails = false
  /** The segments of the spools on the disks of the machines. */
  readonly spools = new Map<string, string[]>()
  /** How long the agents of boxes have been idle, as GET /activity returns it. The other agents do not respond. */
  readonly idleSeconds = new Map<string, number>()
  /** What the agents have received as cloud credentials, by box. */
  readonly cloudCredentials = new Map<string, CloudCredentials[]>()
  /** How agents respond to cloud credentials. Default, and for undefined: they write them. */
  respondToCredentials: ((boxId: string) => Promise<TunnelCallResponse | undefined>) | undefined
  /** How agents reject other requests. */
  agentError: ErrorCode = 'box_unreachable'
  /** The machines of other regions that can be taken over without a copy. */
  onSameDisk: ReadonlyMap<Region, FakeInfrastructure> = new Map()
  /** The size of the files in an archive. Default: their length. */
  contentBytes: number | undefined
  readonly #tunnels: Map<string, Tunnel>
  readonly #events: EventEmitter<TunnelEvents>

  /** @param sameCoordinator whose tunnels this infrastructure shares, as the machines of another region do */
  constructor(sameCoordinator?: FakeInfrastructure) {
    this.#tunnels = sameCoordinator ? sameCoordinator.#tunnels : new Map()
    this.#events = sameCoordinator
      ? sameCoordinator.#events
      : new EventEmitter<TunnelEvents>().setMaxListeners(0)
  }

  readonly provider: Provider = {
    name: 'fake',
    describe: () => 'machines in memory',
    create: async ({ boxId, source }) => {
      await this.#callWithFaults('create', boxId, () => {
        if (this.machines.has(boxId)) return
        const files = source === undefined ? '' : this.#getArchive(source)
        this.machines.set(boxId, { state: 'stopped', token: '', files })
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
    readSpool: (boxId) => {
      this.calls.push(`readSpool ${boxId}`)
      return Readable.from((this.spools.get(boxId) ?? []).map((text) => Buffer.from(text)))
    },
    takeOver: async (boxId, { region }) => {
      const source = this.onSameDisk.get(region)
      if (source === undefined) return false
      await this.#callWithFaults('takeOver', boxId, () => {
        const machine = source.machines.get(boxId)
        if (machine === undefined || this.machines.has(boxId)) return
        this.machines.set(boxId, machine)
        source.machines.delete(boxId)
      })
      return this.machines.has(boxId) && !source.machines.has(boxId)
    },
    freeze: async (boxId) => {
      await this.#callWithFaults('freeze', boxId, () => {
        const machine = this.#getMachine(boxId)
        if (this.canFreeze && machine.state === 'running') machine.state = 'frozen'
      })
      return this.machines.get(boxId)?.state === 'frozen'
    },
    capture: async (boxId, archive, _contents, signal) => {
      let pausedMs: number | null = null
      await this.#callWithFaults(
        'capture',
        boxId,
        () => {
          const machine = this.#getMachine(boxId)
          if (machine.state === 'running') pausedMs = 1
          if (!this.archives.has(archive.archiveId)) this.archives.set(archive.archiveId, machine.files)
        },
        signal,
      )
      return { ...this.#describeArchive(archive), pausedMs }
    },
    copyFiles: async (source, archive, signal) => {
      const { archiveId } = archive
      await this.#callWithFaults(
        'copyFiles',
        archiveId,
        () => {
          const content = this.#getArchive(source)
          if (!this.archives.has(archiveId)) this.archives.set(archiveId, content)
        },
        signal,
      )
      return this.#describeArchive(archive)
    },
    removeArchive: ({ archiveId }) =>
      this.#callWithFaults('removeArchive', archiveId, () => void this.archives.delete(archiveId)),
    removeArchives: (workspaceId) => this.#callWithFaults('removeArchives', workspaceId, () => undefined),
    readArchive: (archive) => {
      const read = async function* (infra: FakeInfrastructure) {
        let content = ''
        await infra.#callWithFaults('readArchive', archive.archiveId, () => {
          content = infra.#getArchive(archive)
        })
        yield content
      }
      return Readable.from(read(this))
    },
    writeArchive: async (archive, stream) => {
      const content = await text(stream)
      await this.#callWithFaults('writeArchive', archive.archiveId, () => {
        if (!this.archives.has(archive.archiveId)) this.archives.set(archive.archiveId, content)
      })
      return this.#describeArchive(archive)
    },
    close: async () => undefined,
  }

  readonly tunnels: Tunnels = {
    current: (boxId) => this.#tunnels.get(boxId),
    local: (boxId) => this.#tunnels.get(boxId),
    wait: (boxId, ms, signal) => this.#waitForTunnel(boxId, ms, signal),
    on: (event, listener) => void this.#events.on(event, listener as never),
    off: (event, listener) => void this.#events.off(event, listener as never),
    flushReports: async (boxId, ms) => {
      await this.#waitForTunnel(boxId, Math.min(ms, RECONNECT_MS))
      this.calls.push(`flushReports ${boxId}`)
      if (this.flushFails) throw new ApiError('box_unreachable')
    },
    disconnect: (boxId, reason) => this.dropTunnel(boxId, reason),
  }

  /** @param resizes whether a running machine takes the new size */
  createResizableProvider(resizes: () => boolean): Provider {
    return {
      ...this.provider,
      resize: async ({ boxId }) => {
        await this.#callWithFaults('resize', boxId, () => undefined)
        return resizes()
      },
    }
  }

  /** Writes the files of a machine. */
  setFiles(boxId: string, files: string): void {
    this.#getMachine(boxId).files = files
  }

  /** Stops the machine without the provider, as a reboot of the host does. */
  powerOff(boxId: string): void {
    const machine = this.machines.get(boxId)
    if (machine === undefined || machine.state === 'stopped') return
    machine.state = 'stopped'
    this.dropTunnel(boxId, 'the machine stopped')
  }

  connectAgent(boxId: string): void {
    if (this.#tunnels.has(boxId)) return
    const generation = nextGeneration++
    const tunnel: Tunnel = {
      boxId,
      generation,
      instanceId: `instance-${generation}`,
      agentVersion: '0.0.0',
      protocolVersion: PROTOCOL_VERSION,
      platform: null,
      failedBuild: null,
      call: async ({ path, body }) => {
        this.calls.push(`request ${boxId} ${path}`)
        if (path === '/cloud-credentials') return this.#receiveCredentials(boxId, JSON.parse(body ?? ''))
        const idleForSec = this.idleSeconds.get(boxId)
        if (path !== '/activity' || idleForSec === undefined) throw new ApiError(this.agentError)
        return { status: 200, body: Buffer.from(JSON.stringify({ idleForSec })) }
      },
    }
    this.#tunnels.set(boxId, tunnel)
    this.#events.emit('connected', tunnel)
  }

  dropTunnel(boxId: string, reason = 'dropped'): void {
    if (this.#tunnels.delete(boxId)) this.#events.emit('disconnected', boxId, reason)
  }

  async #receiveCredentials(boxId: string, received: CloudCredentials): Promise<TunnelCallResponse> {
    this.cloudCredentials.set(boxId, [...(this.cloudCredentials.get(boxId) ?? []), received])
    const response = await this.respondToCredentials?.(boxId)
    if (response !== undefined) return response
    const written = received.profiles.map(({ name }) => name)
    return { status: 200, body: Buffer.from(JSON.stringify({ written, failed: [] })) }
  }

  /** The number of calls so far, of all boxes or of one. */
  countCalls(method: ProviderMethod, boxId?: string): number {
    return this.calls.filter((line) =>
      boxId ? line === `${method} ${boxId}` : line.startsWith(`${method} `),
    ).length
  }

  #getArchive({ archiveId }: ArchiveKey): string {
    const content = this.archives.get(archiveId)
    if (content === undefined) throw new ArchiveError(`There is no archive ${archiveId}.`)
    return content
  }

  #describeArchive(archive: ArchiveKey): ArchiveInfo {
    const bytes = this.#getArchive(archive).length
    return { contentBytes: this.contentBytes ?? bytes, storedBytes: bytes, pausedMs: null }
  }

  #getMachine(boxId: string) {
    const machine = this.machines.get(boxId)
    if (!machine) throw new Error(`There is no machine for ${boxId}.`)
    return machine
  }

  async #callWithFaults(
    method: ProviderMethod,
    boxId: string,
    effect: () => void,
    signal?: AbortSignal,
  ): Promise<void> {
    this.calls.push(`${method} ${boxId}`)
    await unlessAborted(Promise.resolve(this.before[method]?.(boxId)), signal)
    effect()
    await unlessAborted(Promise.resolve(this.after[method]?.(boxId)), signal)
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
