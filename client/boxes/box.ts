// A box: its life, and what runs on it.
/// <reference lib="esnext.disposable" preserve="true" />
import type { BoxDetail, CreateSnapshot, ForkBox, PatchBox, ResizeBox, Snapshot } from '../generated/types.ts'
import { type CallOptions, wait, withTimeLimit } from '../http/calls.ts'
import { createError } from '../http/errors.ts'
import type { AttachedProcess } from './attached-process.ts'
import { Commands } from './commands.ts'
import type { Context } from './context.ts'
import { Files } from './files.ts'
import { Ports } from './ports.ts'
import {
  type ExecOptions,
  type ExecResult,
  exec,
  Process,
  type StartAttachedOptions,
  type StartOptions,
  startAttached,
  startProcess,
} from './process.ts'
import { Prompts } from './prompts.ts'
import { requireField } from './require-field.ts'
import { Terminals } from './terminals.ts'

export type BoxData = BoxDetail['box']
/** Of a call that waits for a state of the box. `timeoutMs` limits all of it. Default: no limit, as a box may be downloading its image. */
export type WaitOptions = CallOptions

const POLL_MS = { first: 25, max: 1_000 }

export class Box {
  readonly id: string
  readonly commands: Commands
  readonly files: Files
  readonly ports: Ports
  readonly prompts: Prompts
  readonly terminals: Terminals
  readonly #context: Context
  #data: BoxData

  constructor(context: Context, data: BoxData) {
    this.#context = context
    this.#data = data
    this.id = data.id
    this.commands = new Commands(context, data.id)
    this.files = new Files(context, data.id)
    this.ports = new Ports(context, data.id)
    this.prompts = new Prompts(context, data.id)
    this.terminals = new Terminals(context, data.id)
  }

  /** The box as the last response had it. */
  get data(): BoxData {
    return this.#data
  }

  get name(): string {
    return this.#data.hostname
  }

  /** Runs a command to its end. A command that exits with 1 is a result, not an error. */
  exec(command: string, options?: ExecOptions): Promise<ExecResult> {
    return exec(this.#context, this.id, command, options)
  }

  /** Starts a command that runs on without the client. With `stdin`, the client writes its standard input, and the command ends without it. */
  start(command: string, options: StartAttachedOptions): Promise<AttachedProcess>
  start(command: string, options?: StartOptions): Promise<Process>
  start(
    command: string,
    options: StartOptions | StartAttachedOptions = {},
  ): Promise<Process | AttachedProcess> {
    return 'stdin' in options
      ? startAttached(this.#context, this.id, command, options)
      : startProcess(this.#context, this.id, command, options)
  }

  /** A command that start() has started, of which the id is known. */
  process(id: string): Process {
    return new Process(this.#context, this.id, id)
  }

  /** Loads the box again. */
  async refresh(options?: CallOptions): Promise<this> {
    this.#data = requireField(await this.#context.routes.boxes.get(this.id, options), 'box')
    return this
  }

  /** Changes the name, the labels, the schedule or the variables. */
  async update(changes: PatchBox, options?: CallOptions): Promise<this> {
    this.#data = requireField(await this.#context.routes.boxes.update(this.id, changes, options), 'box')
    return this
  }

  /** Suspends the box. Resolves when it is suspended. */
  suspend({ stop, ...options }: WaitOptions & { stop?: boolean } = {}): Promise<this> {
    return withTimeLimit(options, async (call) => {
      await this.#context.routes.boxes.suspend(this.id, stop === undefined ? {} : { stop }, call)
      return this.#waitFor('suspended', call)
    })
  }

  /** Wakes the box. Resolves when it runs. */
  wake(options: WaitOptions = {}): Promise<this> {
    return withTimeLimit(options, async (call) => {
      await this.#context.routes.boxes.wake(this.id, call)
      return this.#waitFor('running', call)
    })
  }

  /** Changes the tier. Resolves when the box has it. */
  resize(tier: ResizeBox['target_tier'], options: WaitOptions = {}): Promise<this> {
    return withTimeLimit(options, async (call) => {
      await this.#context.routes.boxes.resize(this.id, { target_tier: tier }, call)
      return this.#waitUntil(
        ({ box, job }) => box.tier === tier && box.observedState !== 'resizing' && job?.op !== 'resize',
        call,
      )
    })
  }

  /** Creates a box with a copy of the files. Resolves when it runs. */
  fork(request: ForkBox = {}, options: WaitOptions = {}): Promise<Box> {
    return withTimeLimit(options, async (call) => {
      const box = requireField(await this.#context.routes.boxes.fork(this.id, request, call), 'box')
      return new Box(this.#context, box as BoxData).waitUntilRunning(call)
    })
  }

  /** Takes a snapshot of the files. Resolves when it is stored. */
  snapshot(request: Omit<CreateSnapshot, 'boxId'>, options: WaitOptions = {}): Promise<Snapshot> {
    return withTimeLimit(options, async (call) => {
      const { routes } = this.#context
      const created = await routes.snapshots.create({ ...request, boxId: this.id }, call)
      const { id: snapshotId } = requireField(created, 'snapshot')
      return poll(call, async () => {
        const snapshots = requireField(await routes.snapshots.list({}, call), 'snapshots')
        const found = snapshots.find(({ id }) => id === snapshotId)
        if (found === undefined || found.status === 'failed')
          throw createError({
            code: 'snapshot_failed',
            message: `The snapshot of ${this.name} failed: ${found?.error ?? 'it was deleted'}.`,
            status: 500,
          })
        return found.status === 'available' ? found : null
      })
    })
  }

  /** Deletes the box and its files. Resolves when the deletion is recorded: nothing stops it any more. */
  async delete(options?: CallOptions): Promise<void> {
    await this.#context.routes.boxes.delete(this.id, options)
  }

  /** Resolves when the box runs. */
  waitUntilRunning(options: WaitOptions = {}): Promise<this> {
    return withTimeLimit(options, (call) => this.#waitFor('running', call))
  }

  #waitFor(target: 'running' | 'suspended', options: WaitOptions): Promise<this> {
    return this.#waitUntil(({ box: { hostname, observedState, desiredState } }) => {
      if (observedState === target || (target === 'suspended' && observedState === 'deep_sleep')) return true
      if (desiredState === target || desiredState === 'terminated' || observedState === 'provision_failed')
        return false
      throw createError({
        code: 'state_changed',
        message: `The box ${hostname} will not become ${target}: another request set its desired state to ${desiredState}.`,
        status: 409,
      })
    }, options)
  }

  async #waitUntil(isReached: (detail: BoxDetail) => boolean, options: WaitOptions): Promise<this> {
    await poll(options, async () => {
      const detail = await this.#context.routes.boxes.get(this.id, options)
      const { job, events } = detail
      const box = requireField(detail, 'box')
      this.#data = box
      if (isReached(detail)) return detail
      if (box.desiredState === 'terminated')
        throw createError({
          code: 'no_such_box',
          message: `The box ${box.hostname} was deleted.`,
          status: 404,
        })
      if (box.observedState === 'provision_failed')
        throw createError({
          code: 'provision_failed',
          message: `The box ${box.hostname} could not be created: ${job?.lastError ?? events?.[0]?.reason ?? 'see its events'}`,
          status: 500,
        })
      return null
    })
    return this
  }
}

/** A box that is deleted at the end of the block that has it with `await using`. */
export class TemporaryBox extends Box implements AsyncDisposable {
  async [Symbol.asyncDispose](): Promise<void> {
    await this.delete()
  }
}

/** Calls `read` until its result is not null. */
async function poll<T>({ signal }: WaitOptions, read: () => Promise<T | null>): Promise<T> {
  for (let pauseMs = POLL_MS.first; ; pauseMs = Math.min(pauseMs * 1.5, POLL_MS.max)) {
    const result = await read()
    if (result !== null) return result
    await wait(pauseMs, signal)
  }
}
