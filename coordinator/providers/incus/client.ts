// The client of an Incus server: calls whose operations are followed by the events of the server.
import type { Readable } from 'node:stream'
import { ExpectedError } from '../../base/expected-error.ts'
import type { EngineAddress } from '../engine-http/address.ts'
import { EngineHttp, type EngineRequest, type EngineResponse } from '../engine-http/client.ts'
import { EngineTimeoutError, EngineUnavailableError, hasStatus, ignoreStatus } from '../engine-http/errors.ts'
import type { Operation } from './api.ts'
import { IncusEvents } from './events.ts'
import { getInstance, IncusOperations, type OperationListener } from './operations.ts'

type Answer<T> = { type: 'sync'; metadata: T } | { type: 'async'; metadata: Operation }

/** An operation has failed. */
export class IncusOperationError extends ExpectedError {
  override name = 'IncusOperationError'
  /** The message of Incus. */
  readonly reason: string

  constructor(request: string, reason: string) {
    super(`Incus failed at ${request}: ${reason}`)
    this.reason = reason
  }
}

/** The message of Incus in an error of a call. */
export const readReason = (error: unknown): string =>
  error instanceof IncusOperationError || hasStatus(error, 400, 403, 404, 409, 412, 500)
    ? (error as { reason: string }).reason
    : ''

export type CallOptions = {
  query?: EngineRequest['query']
  json?: unknown
  content?: Readable | Uint8Array
  headers?: Record<string, string>
  signal?: AbortSignal | undefined
  /** Called when the operation reports its progress. */
  onProgress?: OperationListener
  /** The limit of the call with its operation. Default: 10 minutes. */
  timeoutMs?: number
}

const OPERATION_TIMEOUT_MS = 10 * 60_000

export type IncusClientOptions = {
  address: EngineAddress
  project?: string
  /** Called after the server has been reached, for the first time and again after a loss of the connection. */
  onConnect?(): void
  /** Called when an instance has rebooted. */
  onReboot?(name: string): void
}

export class IncusClient {
  readonly #http: EngineHttp
  readonly #project: string
  readonly #events: IncusEvents
  readonly #operations: IncusOperations

  constructor({ address, project = 'default', onConnect, onReboot }: IncusClientOptions) {
    this.#http = new EngineHttp('Incus', address)
    this.#project = project
    this.#operations = new IncusOperations({
      load: (id) => this.find<Operation>(`/operations/${id}`),
      loadRunning: async () => {
        const lists = await this.get<Record<string, Operation[]> | null>('/operations', { recursion: 1 })
        return [...(lists?.running ?? []), ...(lists?.pending ?? [])]
      },
    })
    this.#events = new IncusEvents({
      address,
      project,
      onEvent: (event) => {
        if (event.type === 'operation') this.#operations.update(event.metadata)
        else if (event.metadata.action === 'instance-restarted')
          onReboot?.(getInstance(event.metadata.source) ?? '')
      },
      onConnect: async () => {
        await this.#operations.resume()
        onConnect?.()
      },
      onFailure: (error) => this.#operations.fail(error),
    })
  }

  /** Resolves when the server can be reached. Throws EngineUnavailableError. */
  connect(): Promise<void> {
    return this.#events.connect()
  }

  async get<T>(path: string, query: EngineRequest['query'] = {}, signal?: AbortSignal): Promise<T> {
    const { metadata } = await this.#send<T>('GET', path, { query, signal })
    return metadata as T
  }

  /** Returns null when the object does not exist. */
  async find<T>(path: string, query: EngineRequest['query'] = {}): Promise<T | null> {
    return (await this.get<T>(path, query).catch(ignoreStatus(404))) ?? null
  }

  /** Returns the response as it is. */
  stream(method: EngineRequest['method'], path: string, options: CallOptions = {}): Promise<EngineResponse> {
    return this.#http.stream(this.#createRequest(method, path, options))
  }

  /**
   * Resolves when the change has been made, with the metadata of its operation if there is one. Throws EngineStatusError when the
   * server refuses, IncusOperationError when the operation fails, and EngineUnavailableError or EngineTimeoutError when the
   * outcome is unknown.
   */
  async call(
    method: EngineRequest['method'],
    path: string,
    options: CallOptions = {},
  ): Promise<Record<string, unknown>> {
    const { signal, onProgress, timeoutMs = OPERATION_TIMEOUT_MS } = options
    // Without the events, the end of the operation would be missed.
    await this.#events.connect()
    const limit = AbortSignal.timeout(timeoutMs)
    const signals = signal === undefined ? limit : AbortSignal.any([signal, limit])
    const answer = await this.#send<Record<string, unknown> | null>(method, path, { ...options, timeoutMs })
    if (answer.type === 'sync') return answer.metadata ?? {}
    const operation = await this.#operations
      .wait(answer.metadata, signals, onProgress)
      .catch((error: unknown) => {
        if (!limit.aborted || signal?.aborted) throw error
        throw new EngineTimeoutError(`Incus did not finish ${method} ${path} within ${timeoutMs / 1000} s.`)
      })
    if (operation.status_code !== 200) throw new IncusOperationError(`${method} ${path}`, operation.err)
    return operation.metadata ?? {}
  }

  /** Waits until operations on the instance have ended that an earlier coordinator, or an aborted call, has started. */
  async settle(instance: string): Promise<void> {
    await this.#events.connect()
    await this.#operations.settle(instance)
  }

  hasUnsettled(instance: string): boolean {
    return this.#operations.hasOrphan(instance)
  }

  async close(): Promise<void> {
    this.#events.close()
    this.#operations.close()
    this.#operations.fail(new EngineUnavailableError('The connection to Incus is closed.'))
    await this.#http.close()
  }

  #send<T>(method: EngineRequest['method'], path: string, options: CallOptions): Promise<Answer<T>> {
    return this.#http.json<Answer<T>>(this.#createRequest(method, path, options))
  }

  #createRequest(
    method: EngineRequest['method'],
    path: string,
    { query, json, content, headers, signal, timeoutMs }: CallOptions,
  ): EngineRequest {
    return {
      method,
      path: `/1.0${path}`,
      query: { project: this.#project, ...query },
      ...(json !== undefined && { json }),
      ...(content !== undefined && { content }),
      ...(headers !== undefined && { headers }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      signal,
    }
  }
}
